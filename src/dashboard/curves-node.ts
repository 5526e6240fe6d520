import { behind, type Confined } from "./confined-node.ts"
import { thinned } from "../statistics/resampling.ts"
import { type Band, bandOf, mostRunsInABand } from "./bands.ts"
import {
  addScores,
  type Axis,
  type Curve,
  downsample,
  emptyPoints,
  type Points,
  type Validation,
  validationCurve,
  validationsOf,
} from "./curve.ts"
import { fields, finite, parsed } from "./RunSummary.ts"
import { scoresIn } from "./scoresFolder.ts"
import * as Layout from "../run/Layout.ts"

export interface RunCurves {
  readonly validation: Curve
  readonly train: Curve
}

export const measures = ["validation", "train"] as const
export type Measure = (typeof measures)[number]

/** Reads the curves of runs; what was read is kept, and of a file that grew only what is new is read. */
export interface Curves {
  readonly of: (run: string) => Promise<RunCurves>
  /** Those that the score files hold, in the order of their steps. */
  readonly validations: (run: string) => Promise<ReadonlyArray<Validation>>
  readonly band: (runs: ReadonlyArray<string>, measure: Measure, axis: Axis) => Promise<Band>
}

/** More points than this no chart shows apart. */
const mostPoints = 400

/** Episodes kept in memory, of all runs together. */
const mostKept = 4_000_000

interface Kept {
  readonly points: Points
  /** Bytes read so far, all of them whole lines. */
  read: number
  behind: string
  readonly validations: Map<string, { readonly size: number; readonly found: ReadonlyArray<Validation> }>
  curves:
    | { readonly signature: string; readonly validations: ReadonlyArray<Validation>; readonly value: RunCurves }
    | undefined
}

export const makeCurves = (files: Confined): Curves => {
  // In the order of their use: the first one is forgotten first.
  const kept = new Map<string, Kept>()
  const bands = new Map<string, { readonly of: ReadonlyArray<Curve>; readonly value: Band }>()
  const turns = new Map<string, ReturnType<typeof read>>()

  const read = async (run: string): Promise<NonNullable<Kept["curves"]>> => {
    const places = scoresIn(await files.text(`${run}/${Layout.config}`))
    const train = `${run}/${Layout.locate(places, Layout.trainScores)}`
    const size = (await files.size(train)) ?? 0
    const before = kept.get(run)
    // A resumed run has cut its scores back.
    const isSame =
      before !== undefined && size >= before.read && before.behind === (await behind(files, train, before.read))
    const one: Kept = isSame
      ? before
      : { points: emptyPoints(), read: 0, behind: "", validations: new Map(), curves: undefined }
    // Part by part: the scores of a long run are more than one string can hold.
    while (size > one.read) {
      const text = (await files.text(train, one.read)) ?? ""
      const whole = text.slice(0, text.lastIndexOf("\n") + 1)
      if (whole === "") break
      addScores(one.points, whole)
      one.read += Buffer.byteLength(whole)
      one.behind = await behind(files, train, one.read)
    }
    const validations = await readValidations(
      run,
      `${run}/${Layout.locate(places, Layout.validationScoresFolder)}`,
      one,
    )
    kept.delete(run)
    kept.set(run, one)
    forget()
    const signature = `${one.read} ${validations.map(({ step, returns }) => `${step}:${returns.length}`).join(" ")}`
    if (one.curves?.signature !== signature) {
      const start = one.points.time[0] ?? validations[0]?.time
      const value = { validation: validationCurve(validations, start), train: downsample(one.points, mostPoints) }
      one.curves = { signature, validations, value }
    }
    return one.curves
  }

  const readValidations = async (run: string, folder: string, one: Kept): Promise<ReadonlyArray<Validation>> => {
    const found: Array<Validation> = []
    for (const name of (await files.list(folder)).files) {
      const seen = Layout.seenEpisodesOf(name)
      if (seen === undefined) continue
      const size = (await files.size(`${folder}/${name}`)) ?? 0
      if (one.validations.get(name)?.size !== size) {
        const text = (await files.text(`${folder}/${name}`)) ?? ""
        one.validations.set(name, { size, found: validationsOf(text, seen, one.points) })
      }
      found.push(...(one.validations.get(name)?.found ?? []))
    }
    if (found.length > 0) return found.sort((a, b) => a.step - b.step)
    return fromReturns(await files.text(`${run}/${Layout.returns}`))
  }

  const forget = (): void => {
    let total = [...kept.values()].reduce((sum, { points }) => sum + points.steps.length, 0)
    for (const [run, { points }] of kept) {
      if (total <= mostKept || kept.size === 1) return
      total -= points.steps.length
      kept.delete(run)
    }
  }

  /** One reader a run at a time: two would add the same lines twice. */
  const readInTurn = (run: string): ReturnType<typeof read> => {
    const turn = (turns.get(run) ?? Promise.resolve()).then(() => read(run))
    turns.set(run, turn)
    void turn.finally(() => void (turns.get(run) === turn && turns.delete(run))).catch(() => undefined)
    return turn
  }

  const of = async (run: string): Promise<RunCurves> => (await readInTurn(run)).value

  return {
    of,
    validations: async (run) => (await readInTurn(run)).validations,
    band: async (unsorted, measure, axis) => {
      // Resampling depends on the order, and the table can be sorted in any.
      const runs = thinned(unsorted.toSorted(), mostRunsInABand)
      const curves: Array<Curve> = []
      for (const run of runs) curves.push((await of(run))[measure])
      const key = `${measure} ${axis}\n${runs.join("\n")}`
      const before = bands.get(key)
      if (before?.of.every((curve, index) => curve === curves[index]) === true) return before.value
      const value = bandOf(curves, axis)
      bands.delete(key)
      bands.set(key, { of: curves, value })
      if (bands.size > 500) for (const oldest of bands.keys()) if (bands.size > 500) bands.delete(oldest)
      return value
    },
  }
}

const unsaid = { time: NaN, episodes: NaN, lengths: [], terminated: [] }

/** Of runs without score files, such as RLtools' own. */
const fromReturns = (text: string | undefined): ReadonlyArray<Validation> => {
  const records = parsed(text)
  if (!Array.isArray(records)) return []
  return records.flatMap((record: unknown) => {
    const { step, returns } = fields(record)
    const numbers = Array.isArray(returns) ? returns.flatMap((value: unknown) => finite(value) ?? []) : []
    return numbers.length === 0 ? [] : [{ step: finite(step) ?? 0, ...unsaid, returns: numbers }]
  })
}
