/**
 * Builds networks of states that describe texts: a transition reads a byte of a range, reads nothing, or reads a text that
 * another network describes. Because a network can call itself, JSON values can be nested. `Automaton.ts` runs them.
 */
import { EngineError } from "../inference/EngineError.ts"

/** The largest number of states of all networks of one format. It bounds the time and the memory of everything else. */
const mostStates = 50_000
/** The largest number of transitions that read a byte, of which a state usually has one or two. */
const mostReads = 200_000
/** The largest sum of states, transitions and sizes of regular expressions: more than one format can have by its own limits. */
const mostWork = 400_000
/** The largest number of calls inside each other, so of values in a JSON text. */
export const mostDepth = 64

interface ByteRange {
  readonly least: number
  readonly most: number
  readonly to: number
}

interface Call {
  /** The network to read first. */
  readonly network: number
  /** The state after its text. */
  readonly to: number
}

/** All networks of a format. */
export interface Networks {
  /** The name of the format in messages. */
  readonly name: string
  /** The first and the last state of each network. Network 0 describes the whole text. */
  readonly ends: ReadonlyArray<{ readonly first: number; readonly last: number }>
  readonly isLast: ReadonlyArray<boolean>
  /** The transitions of each state. */
  readonly ranges: ReadonlyArray<ReadonlyArray<ByteRange>>
  readonly jumps: ReadonlyArray<ReadonlyArray<number>>
  readonly calls: ReadonlyArray<ReadonlyArray<Call>>
  /** The least number of nested calls from a state to the end of its network; infinite if that is more than `mostDepth`. */
  readonly needs: ReadonlyArray<number>
}

/** Makes the error of a format that cannot be used. `path` is the place in its JSON Schema. */
export const formatError = (path: string, problem: string): EngineError =>
  new EngineError({ reason: "invalidRequest", part: "jsonSchema", message: `${path}: ${problem}` })

/** Counts the work of compiling several formats, which have a limit together so that a request cannot take long. */
export class CompileWork {
  private spent = 0

  /** Counts work. Throws an `EngineError` with the name of a format if it is too much. */
  spend(size: number, name: string): void {
    this.spent += size
    if (this.spent > mostWork)
      throw formatError(
        name,
        `expected a smaller ${name}, or fewer of them in one request; they are too large together`,
      )
  }
}

export class NetworkBuilder {
  private readonly name: string
  private readonly work: CompileWork
  private readonly ends: Array<{ readonly first: number; readonly last: number }> = []
  private readonly ranges: Array<Array<ByteRange>> = []
  private readonly jumps: Array<Array<number>> = []
  private readonly calls: Array<Array<Call>> = []
  private reads = 0

  /** `name` is what the format is called in messages. Formats with the same `work` have a limit together. */
  constructor(name = "schema", work = new CompileWork()) {
    this.name = name
    this.work = work
  }

  /** Counts work that adds no states and no transitions. */
  spend(size: number): void {
    this.work.spend(size, this.name)
  }

  /** Adds a state. */
  state(): number {
    this.spend(1)
    if (this.ranges.length >= mostStates)
      throw formatError(this.name, `expected a ${this.name} for at most ${mostStates} states; make it smaller`)
    this.jumps.push([])
    this.calls.push([])
    return this.ranges.push([]) - 1
  }

  /** Adds a network, whose first and last states have no transitions yet. */
  network(): { readonly index: number; readonly first: number; readonly last: number } {
    const first = this.state()
    const last = this.state()
    return { index: this.ends.push({ first, last }) - 1, first, last }
  }

  /** Adds a transition that reads a byte from `least` to `most`. */
  read(from: number, least: number, most: number, to: number): void {
    this.spend(1)
    if (++this.reads > mostReads)
      throw formatError(this.name, `expected a ${this.name} for at most ${mostReads} transitions; make it smaller`)
    this.ranges[from].push({ least, most, to })
  }

  /** Adds a transition that reads nothing. */
  jump(from: number, to: number): void {
    this.jumps[from].push(to)
  }

  /** Adds a transition that reads the text of a network. */
  call(from: number, network: number, to: number): void {
    this.calls[from].push({ network, to })
  }

  /** Adds states that read these bytes one after the other, and returns the last one. */
  literal(from: number, bytes: Iterable<number>): number {
    let at = from
    for (const byte of bytes) {
      const next = this.state()
      this.read(at, byte, byte, next)
      at = next
    }
    return at
  }

  finish(): Networks {
    const isLast = this.ranges.map(() => false)
    for (const { last } of this.ends) isLast[last] = true
    const { name, ends, ranges } = this
    // Alternatives may be equal. Each would be followed anew wherever the state is reached.
    const jumps = this.jumps.map((all) => (all.length < 2 ? all : [...new Set(all)]))
    const calls = this.calls.map((all) =>
      all.length < 2 ? all : [...new Map(all.map((call) => [`${call.network} ${call.to}`, call])).values()],
    )
    const networks = { name, ends, isLast, ranges, jumps, calls }
    return { ...networks, needs: needsOf(networks) }
  }
}

/** A call from a state, with the first state of its network. */
interface CallFrom {
  readonly from: number
  readonly first: number
  readonly to: number
}

/** Lists for each state the states from which a transition without a call leads to it, and the calls that it is a part of. */
const transitionsTo = ({ ends, ranges, jumps, calls }: Omit<Networks, "needs">) => {
  const before: ReadonlyArray<Array<number>> = ranges.map(() => [])
  const callsOf: ReadonlyArray<Array<CallFrom>> = ranges.map(() => [])
  for (let from = 0; from < ranges.length; from++) {
    for (const { to } of ranges[from]) before[to].push(from)
    for (const to of jumps[from]) before[to].push(from)
    for (const { network, to } of calls[from]) {
      const { first } = ends[network]
      for (const part of new Set([first, to])) callsOf[part].push({ from, first, to })
    }
  }
  return { before, callsOf }
}

/** Computes `Networks.needs`: first the states that need no call, then those that need one, and so on, each once. */
const needsOf = (networks: Omit<Networks, "needs">): ReadonlyArray<number> => {
  const { before, callsOf } = transitionsTo(networks)
  const needs = networks.isLast.map(() => Infinity)
  /** The states that need at most each number of calls, and have to be looked at. */
  const waiting: ReadonlyArray<Array<number>> = Array.from({ length: mostDepth + 1 }, () => [])
  for (const [state, last] of networks.isLast.entries()) if (last) waiting[0].push(state)
  for (const [need, states] of waiting.entries()) {
    for (let state = states.pop(); state !== undefined; state = states.pop()) {
      if (needs[state] < Infinity) continue
      needs[state] = need
      for (const from of before[state]) states.push(from)
      for (const { from, first, to } of callsOf[state]) {
        const needed = Math.max(1 + needs[first], needs[to])
        if (needed <= mostDepth) waiting[needed].push(from)
      }
    }
  }
  return needs
}
