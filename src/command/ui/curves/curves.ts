/** Reads the learning curves of runs and keeps them in memory. When a file has grown, it reads only the new part. */
import { Effect, Semaphore } from "effect"
import { utf8 } from "../../../base/text/utf8.ts"
import { unplacedEntry } from "../../../run/find/RunEntry.ts"
import * as Layout from "../../../run/Layout.ts"
import type { FileSource } from "../../../run/read/FileSource.ts"
import { type ReadPosition, readOn, start, wholeLines } from "../../../run/read/readOn.ts"
import * as RunReader from "../../../run/RunReader.ts"
import { thinned } from "../../../base/statistics/resampling.ts"
import { type Band, bandOf, mostRunsInABand } from "./bands.ts"
import type { Axis, Curve, Measure } from "./Curve.ts"
import {
  addScores,
  downsample,
  emptyPoints,
  type Points,
  type ScoredValidation,
  validationCurve,
  validationsOf,
} from "./scoreCurves.ts"
import { fields, finite, parsed } from "../json.ts"

interface RunCurves {
  readonly validation: Curve
  readonly train: Curve
}

/** The largest number of points in a curve, since a chart cannot show more. */
const mostPoints = 400

/** The largest number of training episodes in memory, for all runs together. */
const mostKept = 4_000_000

/** The largest number of bands in memory. */
const mostBands = 500

/** The data of one run that is kept in memory. `position` is how far its training scores have been read. */
interface CachedCurves {
  points: Points
  position: ReadPosition
  readonly validations: Map<string, { readonly size: number; readonly validations: ReadonlyArray<ScoredValidation> }>
  curves:
    | { readonly signature: string; readonly validations: ReadonlyArray<ScoredValidation>; readonly value: RunCurves }
    | undefined
}

/** The data of the runs that were used last. */
interface CurvesInMemory {
  readonly files: FileSource
  /** Opens a run. The data that several readers share, such as parsed configs, is kept together with the curves. */
  readonly open: ReturnType<typeof RunReader.over>
  /** The runs by their paths, in the order of use: the run that was used least recently is dropped first. */
  readonly kept: Map<string, CachedCurves>
  readonly bands: CachedBands
  /** Two simultaneous readers of one run would add the same lines twice. */
  readonly turn: Semaphore.Semaphore
}

/** The bands that were computed last, each with the curves from which it was computed. */
type CachedBands = Map<string, { readonly of: ReadonlyArray<Curve>; readonly value: Band }>

export const makeCurves = (files: FileSource) => {
  const memory: CurvesInMemory = {
    files,
    open: RunReader.over(files),
    kept: new Map(),
    bands: new Map(),
    turn: Semaphore.makeUnsafe(1),
  }
  const readInTurn = (run: string): ReturnType<typeof read> =>
    // An interruption between the points and their position would add the same points twice.
    memory.turn.withPermits(1)(Effect.uninterruptible(read(memory, run)))
  const of = (run: string): Effect.Effect<RunCurves> => Effect.map(readInTurn(run), ({ value }) => value)

  return {
    of,
    /** Returns the validations in the score files, in the order of their steps. */
    validations: (run: string) => Effect.map(readInTurn(run), ({ validations }) => validations),
    /** Returns the band of several runs, named by their paths. It is computed again only if a curve has changed. */
    band: Effect.fnUntraced(function* (unsorted: ReadonlyArray<string>, measure: Measure, axis: Axis) {
      // The interval depends on the order of the runs, so sort them: the user can change their order.
      const runs = thinned(unsorted.toSorted(), mostRunsInABand)
      const curves = (yield* Effect.forEach(runs, of)).map((curves) => curves[measure])
      return bandIn(memory.bands, `${measure} ${axis}\n${runs.join("\n")}`, curves, axis)
    }),
  }
}

/** Returns the band of curves, which is stored under a key. It is computed again only if a curve has changed. */
const bandIn = (bands: CachedBands, key: string, curves: ReadonlyArray<Curve>, axis: Axis): Band => {
  const before = bands.get(key)
  if (before?.of.every((curve, index) => curve === curves[index]) === true) return before.value
  const value = bandOf(curves, axis)
  bands.delete(key)
  bands.set(key, { of: curves, value })
  for (const oldest of bands.keys()) if (bands.size > mostBands) bands.delete(oldest)
  return value
}

/** Reads the data that was added to the files of a run since the last call, and returns the run's curves. */
const read = Effect.fnUntraced(function* (
  { files, open, kept }: CurvesInMemory,
  path: string,
): Effect.fn.Return<NonNullable<CachedCurves["curves"]>> {
  const run = open(unplacedEntry(path))
  const one: CachedCurves = kept.get(path) ?? {
    points: emptyPoints(),
    position: start,
    validations: new Map(),
    curves: undefined,
  }
  one.position = yield* readOn(files, yield* run.locate(Layout.trainScores), one.position, {
    take: (bytes) => {
      const whole = wholeLines(bytes)
      if (whole > 0) addScores(one.points, utf8.decode(bytes.subarray(0, whole)))
      return whole
    },
    restart: () => {
      one.points = emptyPoints()
      one.validations.clear()
    },
  })
  const validations = yield* readValidations(files, run, one)
  kept.delete(path)
  kept.set(path, one)
  forget(kept)
  const signature = `${one.position.read} ${validations.map(({ step, returns }) => `${step}:${returns.length}`).join(" ")}`
  if (one.curves?.signature !== signature) {
    const runStart = one.points.time[0] ?? validations[0]?.time
    // A multi-run trainer plays many episodes between two updates.
    const mergeSteps = (yield* run.kind) === "multirun"
    const train = downsample(one.points, mostPoints, { mergeSteps })
    const value = { validation: validationCurve(validations, runStart), train }
    one.curves = { signature, validations, value }
  }
  return one.curves
})

/** Reads the validations in the score files that have changed, in the order of their steps. */
const readValidations = Effect.fnUntraced(function* (files: FileSource, run: RunReader.RunReader, one: CachedCurves) {
  const folder = yield* run.locate(Layout.validationScoresFolder)
  const all: Array<ScoredValidation> = []
  for (const name of Layout.validationFilesIn(yield* files.list(folder))) {
    const file = `${folder}/${name}`
    const size = (yield* files.size(file)) ?? 0
    let before = one.validations.get(name)
    if (before?.size !== size) {
      const text = (yield* files.text(file)) ?? ""
      const training = (yield* run.kind) === "multirun" ? "updates" : one.points
      before = { size, validations: validationsOf(text, Layout.seenEpisodesOf(name) ?? 0, training) }
      one.validations.set(name, before)
    }
    for (const validation of before.validations) all.push(validation)
  }
  if (all.length > 0) return all.sort((a, b) => a.step - b.step)
  return fromReturns(yield* files.text(yield* run.locate(Layout.returns)))
})

/** Forgets the runs that were used least recently, if more than `mostKept` episodes are kept. */
const forget = (kept: Map<string, CachedCurves>): void => {
  let total = [...kept.values()].reduce((sum, { points }) => sum + points.steps.length, 0)
  for (const [run, { points }] of kept) {
    if (total <= mostKept || kept.size === 1) return
    total -= points.steps.length
    kept.delete(run)
  }
}

/** The fields of a validation that a return.json doesn't contain. */
const unknown = { time: NaN, episodes: NaN, lengths: [], terminated: [] }

/** Reads the validations in the text of a return.json, for runs without score files, such as the runs of RLtools. */
const fromReturns = (text: string | undefined): ReadonlyArray<ScoredValidation> => {
  const records = parsed(text)
  if (!Array.isArray(records)) return []
  return records.flatMap((record: unknown) => {
    const { step, returns } = fields(record)
    const numbers = Array.isArray(returns) ? returns.flatMap((value: unknown) => finite(value) ?? []) : []
    return numbers.length === 0 ? [] : [{ step: finite(step) ?? 0, ...unknown, returns: numbers }]
  })
}
