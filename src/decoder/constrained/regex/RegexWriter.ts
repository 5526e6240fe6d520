/** Adds the texts of regular expressions to networks, also those whose number of characters is limited. */
import { formatError, type NetworkBuilder } from "../Network.ts"
import type { CharacterSet } from "./CharacterSet.ts"
import { CharacterWriter } from "./CharacterWriter.ts"
import { containing, lengthsOfRegex, parseRegex } from "./parseRegex.ts"
import { type RegexEdge, type RegexGraph, regexGraph } from "./regexGraph.ts"

/**
 * The largest size of all expressions of one format: the nodes of their graphs, and the steps between places, each a node with
 * a number of characters before it, and the ranges of characters that they read.
 */
const mostSize = 60_000

/** The numbers of characters that a text may have. */
interface LengthLimits {
  readonly least: number
  readonly most: number
}

/** A place in a text of a regular expression. */
interface RegexPlace {
  readonly node: number
  /** The number of characters before it, or the largest number that is told apart. */
  readonly count: number
  /** Whether an edge `end` was passed, so that no character follows. */
  readonly isEnded: boolean
}

/** A way from one place to the next one, which reads a character of the set, or nothing. */
interface RegexStep {
  readonly to: number
  readonly set: CharacterSet | undefined
}

/** The places of an expression, of which number 0 is the first. */
interface Explored {
  /** The steps from each place. */
  readonly stepsFrom: ReadonlyArray<ReadonlyArray<RegexStep>>
  /** The places where a text can end. */
  readonly lasts: ReadonlySet<number>
}

interface RegexText {
  readonly source: unknown
  /** The place of the expression in the format, for messages. */
  readonly path: string
  readonly limits?: LengthLimits
  /** Whether the text may have other characters before and after what the expression matches. */
  readonly search: boolean
}

/** Adds the regular expressions of one format, which share the networks of their characters and a limit of work. */
export class RegexWriter {
  private readonly builder: NetworkBuilder
  private readonly characters: CharacterWriter
  /** The size of all expressions so far. */
  private size = 0

  /** With `quoted`, characters are those of JSON strings, with escapes where JSON needs them. */
  constructor(builder: NetworkBuilder, { quoted }: { readonly quoted: boolean }) {
    this.builder = builder
    this.characters = new CharacterWriter(builder, { quoted })
  }

  /** Adds the texts of a regular expression between two states. */
  add({ source, path, limits = { least: 0, most: Infinity }, search }: RegexText, from: number, to: number): void {
    const spend = (): void => this.spend(1, path)
    const parsed = parseRegex(source, path)
    const whole = search ? containing(parsed) : parsed
    const graph = regexGraph(whole, spend)
    const explored = this.explored(graph, withoutNeedless(limits, lengthsOfRegex(whole)), path)
    const { useful, stepsFrom, settled } = simplified(explored)
    if (useful.length === 0) return
    const states = new Map(useful.map((place) => [place, this.builder.state()]))
    const stateOf = (place: number): number => states.get(settled(place)) ?? to
    this.builder.jump(from, stateOf(0))
    for (const place of useful) {
      const state = stateOf(place)
      if (explored.lasts.has(place)) this.builder.jump(state, to)
      for (const { set, to: next } of stepsFrom[place]) {
        if (set === undefined) this.builder.jump(state, stateOf(next))
        else this.spend(this.characters.add(set, state, stateOf(next)), path)
      }
    }
  }

  private spend(size: number, path: string): void {
    this.size += size
    this.builder.spend(size)
    if (this.size <= mostSize) return
    const problem =
      "the regular expressions of this format are too large together; use smaller numbers in quantifiers such as {1,20} and in maxLength"
    throw formatError(path, problem)
  }

  /** Lists the places that can be reached, beginning with the first one, and the steps between them. */
  private explored(graph: RegexGraph, { least, most }: LengthLimits, path: string): Explored {
    // Whether nothing was read is told apart for `^`, even if the length has no limit.
    const counted = most === Infinity ? Math.max(1, least) : most
    const places: Array<RegexPlace> = []
    const known = new Map<number, number>()
    const reach = (place: RegexPlace): number => {
      const key = (place.node * (counted + 1) + place.count) * 2 + Number(place.isEnded)
      const before = known.get(key)
      if (before !== undefined) return before
      known.set(key, places.length)
      return places.push(place) - 1
    }
    const stepsFrom: Array<ReadonlyArray<RegexStep>> = []
    reach({ node: graph.first, count: 0, isEnded: false })
    for (let from = 0; from < places.length; from++) {
      const place = places[from]
      this.spend(1 + graph.edges[place.node].length, path)
      stepsFrom.push(
        graph.edges[place.node].flatMap((edge) => {
          const next = placeAfter(place, edge, { counted, most })
          return next === undefined ? [] : [{ to: reach(next), set: edge.type === "read" ? edge.set : undefined }]
        }),
      )
    }
    const isLast = ({ node, count }: RegexPlace): boolean => node === graph.last && count >= least
    return { stepsFrom, lasts: new Set(Array.from(places.keys()).filter((at) => isLast(places[at]))) }
  }
}

/** Leaves out limits that all texts of an expression keep, since telling lengths apart needs many states. */
const withoutNeedless = ({ least, most }: LengthLimits, of: LengthLimits): LengthLimits => ({
  least: of.least >= least ? 0 : least,
  most: of.most <= most ? Infinity : most,
})

/** Returns the place after an edge; undefined if the edge cannot be passed. */
const placeAfter = (
  { count, isEnded }: RegexPlace,
  edge: RegexEdge,
  { counted, most }: { readonly counted: number; readonly most: number },
): RegexPlace | undefined => {
  const { to } = edge
  switch (edge.type) {
    case "empty":
      return { node: to, count, isEnded }
    case "begin":
      return count === 0 ? { node: to, count, isEnded } : undefined
    case "end":
      return { node: to, count, isEnded: true }
    case "read":
      return isEnded || count >= most ? undefined : { node: to, count: Math.min(counted, count + 1), isEnded }
  }
}

/**
 * Leaves out places from which no text ends, and those with nothing but one step that reads nothing: `settled` returns the place
 * that is used instead.
 */
const simplified = ({ stepsFrom, lasts }: Explored) => {
  const distances = distancesTo(lasts, stepsFrom)
  const fruitful = stepsFrom.map((steps) => steps.filter(({ to }) => distances[to] < Infinity))
  const nextOf = (place: number): number | undefined => {
    const [step, second] = fruitful[place]
    return lasts.has(place) || second !== undefined || step?.set !== undefined ? undefined : step?.to
  }
  const settled = (place: number): number => {
    let at = place
    for (let next = nextOf(at); next !== undefined; next = nextOf(at)) at = next
    return at
  }
  const useful = Array.from(distances.keys()).filter((at) => distances[at] < Infinity && nextOf(at) === undefined)
  return { useful, stepsFrom: fruitful, settled }
}

/** Returns the number of steps from each place to the nearest of some places; infinite where no way leads there. */
const distancesTo = (
  lasts: ReadonlySet<number>,
  stepsFrom: ReadonlyArray<ReadonlyArray<RegexStep>>,
): ReadonlyArray<number> => {
  const before: ReadonlyArray<Array<number>> = stepsFrom.map(() => [])
  for (const [from, steps] of stepsFrom.entries()) for (const { to } of steps) before[to].push(from)
  const distances = stepsFrom.map(() => Infinity)
  const waiting = [...lasts]
  for (const last of lasts) distances[last] = 0
  for (let at = 0; at < waiting.length; at++) {
    for (const from of before[waiting[at]]) {
      if (distances[from] < Infinity) continue
      distances[from] = distances[waiting[at]] + 1
      waiting.push(from)
    }
  }
  return distances
}
