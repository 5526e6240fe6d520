/** Runs the trials of a study, several at a time, and saves a record of each that has ended. */
import { join, relative } from "node:path"
import { Deferred, Effect, Option, Semaphore } from "effect"
import { exists } from "../../../base/config/files.ts"
import { messageOf } from "../../../base/config/text.ts"
import { meanOf } from "../../../base/statistics/resampling.ts"
import { toPath } from "../../../run/identifier.ts"
import { stopOf } from "../../tune/asha.ts"
import type { Params } from "../../tune/Space.ts"
import { knownAt, suggest } from "../../tune/study.ts"
import { meanCurve, type Point, type Trial, type TrialRun } from "../../tune/Trial.ts"
import { readRunIn } from "../findRun.ts"
import { finishedEarlier, RunFailed } from "../../sweep/child.ts"
import { checkStarted, type StartedRun, stateOf } from "../../sweep/folder.ts"
import type { PlannedRun } from "../../sweep/plan.ts"
import { makeTrainRun } from "../../sweep/trainRun.ts"
import { pathOf, saveTrials, type StudyFolder } from "./folder.ts"
import { StudyError, valueOf } from "./metric.ts"
import { limitsOfTrial, planTrial, type Tuned } from "./plan.ts"

/** A study gives up if the first trials, at least so many, have all failed. */
const mostFailures = 5

export interface Watched {
  /** Called when a trial starts, and when it has ended. `isEarlier` means that it had ended before the study was resumed. */
  readonly started: (trial: number) => void
  readonly ended: (trial: Trial, isEarlier: boolean) => void
}

/** Runs the trials of a study that have not ended yet, at most `workers` at a time. Returns the records of all trials. */
export const runTrials = Effect.fnUntraced(function* (
  tuned: Tuned,
  folder: StudyFolder,
  how: { readonly workers: number; readonly command: string; readonly watched: Watched },
) {
  const { study, resultsDir, time, file } = folder
  const { trials: count, parallel } = study.settings
  const { input } = tuned
  const directory = pathOf(folder)
  const { command } = how
  const concurrency = Math.min(how.workers, parallel)
  const trainRun = yield* makeTrainRun({ input, resultsDir, time, commit: file.commit, command, concurrency })
  const records: Array<Trial | undefined> = Array.from({ length: count }, (_, at) => folder.trials[at])
  const ends = yield* Effect.all(records.map(() => Deferred.make<Trial>()))
  const suggestions: Array<Params | undefined> = folder.trials.map(({ params }) => params)
  const turn = yield* Semaphore.make(1)

  /** Suggests a trial, when all trials that it must know have ended. */
  const paramsOf = (number: number, ended: ReadonlyArray<Trial>): Params => {
    const known = knownAt(number, parallel)
    const pending: Array<Params> = []
    for (let before = known; before < number; before++) pending.push(paramsOf(before, ended))
    return (suggestions[number] ??= suggest(study, number, { ended: ended.slice(0, known), pending }))
  }

  const save = turn.withPermits(1)(
    Effect.suspend(() => {
      const missing = records.findIndex((record) => record === undefined)
      return saveTrials(
        directory,
        records.slice(0, missing < 0 ? count : missing).flatMap((record) => record ?? []),
      )
    }),
  )

  const train = Effect.fnUntraced(function* (run: PlannedRun) {
    const path = join(resultsDir, toPath({ ...run.identity, time, commit: file.commit }))
    yield* untilReleased(path)
    // If an earlier record was lost or edited, a later run may have been suggested other settings than now.
    const started = (yield* exists(path))
      ? yield* checkStarted({ directory: path, state: yield* stateOf(path) }, run)
      : undefined
    if (started?.state === "finished") return yield* finishedEarlier(path)
    yield* refuseUnfinished(input.cluster, started)
    return yield* trainRun(run, started, () => {})
  })

  const runTrial = Effect.fnUntraced(function* (number: number) {
    const before = records[number]
    const known = yield* Effect.forEach(ends.slice(0, knownAt(number, parallel)), Deferred.await)
    if (before === undefined) how.watched.started(number)
    const record = before ?? (yield* trialOf(number, known))
    records[number] = record
    if (before === undefined) yield* save
    how.watched.ended(record, before !== undefined)
    yield* Deferred.succeed(ends[number], record)
    yield* refuseFailures(records)
  })

  const trialOf = Effect.fnUntraced(function* (number: number, known: ReadonlyArray<Trial>) {
    const params = paramsOf(number, known)
    const limits = limitsOfTrial(study, known, file.base)
    const runs: Array<TrialRun> = []
    const curves: Array<ReadonlyArray<Point>> = []
    const recordOf = (state: Trial["state"], reason: string | null): Trial => {
      const values = runs.flatMap(({ value }) => value ?? [])
      const value = state === "failed" || values.length === 0 ? null : meanOf(values)
      return { trial: number, state, value, reason, params, runs, curve: meanCurve(curves) }
    }
    const planned = yield* Effect.result(planTrial(tuned, study, { number, params, limits }))
    if (planned._tag === "Failure") return recordOf("failed", messageOf(planned.failure))
    for (const run of planned.success) {
      const outcome = yield* Effect.result(train(run))
      if (outcome._tag === "Failure") {
        if (!(outcome.failure instanceof RunFailed)) return yield* outcome.failure
        return recordOf("failed", outcome.failure.message)
      }
      const { result, curve } = outcome.success
      runs.push({
        seed: run.identity.seed,
        path: relative(directory, result.runDir).replaceAll("\\", "/"),
        value: yield* valueOf(study.settings.metric, outcome.success, study.settings.direction === "maximize"),
        steps: result.steps,
        digest: result.digest,
      })
      curves.push(curve)
      const stop = stopOf(curve, limits)
      if (stop !== undefined) {
        const { point, limit } = stop
        return recordOf(
          "pruned",
          `seed ${run.identity.seed}: ${point.value} at step ${point.step} is below ${limit.return}, the limit at step ${limit.step}`,
        )
      }
    }
    // A run that never had a score, such as one without an ended episode, can't be compared.
    return runs.some(({ value }) => value === null)
      ? recordOf("failed", "a run has no score")
      : recordOf("finished", null)
  })

  yield* Effect.forEach(
    records.map((_, number) => number),
    runTrial,
    { concurrency, discard: true },
  )
  return records.flatMap((record) => record ?? [])
})

/** The time between two looks at a run that another process still writes, and how often it is looked at. */
const pause = 100
const mostLooks = 600

/**
 * Waits until no other process writes the run in a folder. After a study was killed, the processes of its runs still save
 * them for a moment; a run that is held by them has not failed.
 */
const untilReleased = Effect.fnUntraced(function* (path: string) {
  for (let look = 0; (yield* readRunIn(path).state) === "running"; look++) {
    if (look === mostLooks)
      return yield* new StudyError({
        message: `${path}: another process is writing this run; wait until it ends, or stop it`,
      })
    // This waits by the real clock: a test may have stopped the program's clock, but not the other process.
    yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, pause)))
  }
})

/** Refuses to continue a run of this machine on a cluster: its worker would not find what is saved. */
const refuseUnfinished = (cluster: Option.Option<string>, started: StartedRun | undefined) =>
  Option.isSome(cluster) && started?.state === "unfinished"
    ? Effect.fail(
        new StudyError({
          message: `${started.directory}: a cluster can't train a saved run further; resume without --cluster`,
        }),
      )
    : Effect.void

/** Gives up if the first trials have all failed, because then the training itself is broken. */
const refuseFailures = (records: ReadonlyArray<Trial | undefined>) => {
  const first = records.slice(0, Math.min(mostFailures, records.length))
  if (!first.every((record) => record?.state === "failed")) return Effect.void
  const which = first.length === 1 ? "the only trial" : `the first ${first.length} trials`
  return Effect.fail(new StudyError({ message: `${which} failed: ${first[0]?.reason ?? ""}` }))
}
