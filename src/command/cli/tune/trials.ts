/** Runs the trials of a study, several at a time, and saves a record of each trial that has ended. */
import { join, relative } from "node:path"
import { Deferred, Effect, Option, Semaphore } from "effect"
import { exists } from "../../../base/files/files.ts"
import { messageOf } from "../../../base/text/text.ts"
import { meanOf } from "../../../base/statistics/resampling.ts"
import { toPath } from "../../../run/identifier.ts"
import { stopOf } from "../../tune/asha.ts"
import type { Params } from "../../tune/Space.ts"
import { knownAt, suggest } from "../../tune/study.ts"
import { meanCurve, type TrialPoint, type Trial, type TrialRun } from "../../tune/Trial.ts"
import { readRunIn } from "../findRun.ts"
import { finishedEarlier } from "../../sweep/child.ts"
import { checkStarted, type StartedRun, stateOf } from "../../sweep/folder.ts"
import type { PlannedRun } from "../../sweep/plan.ts"
import { makeTrainRun } from "../../sweep/trainRun.ts"
import { pathOf, saveTrials, type StudyFolder } from "./folder.ts"
import { valueOf } from "./metric.ts"
import { limitsOfTrial, planTrial, type Tuned } from "./plan.ts"
import { CommandError, isRunError } from "../../CommandError.ts"

/** A study gives up if this many trials at its beginning have all failed. */
const mostFailures = 5

export interface TrialEvents {
  /**
   * `started` is called when a trial starts, and `ended` when it has ended. `isEarlier` means that it had ended before the
   * study was resumed.
   */
  readonly started: (trial: number) => void
  readonly ended: (trial: Trial, isEarlier: boolean) => void
}

/** The trials of a study while they run. */
interface Trials {
  readonly tuned: Tuned
  readonly folder: StudyFolder
  readonly watched: TrialEvents
  readonly trainRun: Effect.Success<ReturnType<typeof makeTrainRun>>
  /** The records of the trials that have ended, by their numbers. */
  readonly records: Array<Trial | undefined>
  /** The ends of the trials, for which later trials wait that need their results. */
  readonly ends: ReadonlyArray<Deferred.Deferred<Trial>>
  /** The settings that have been suggested so far, by the numbers of the trials. */
  readonly suggestions: Array<Params | undefined>
  /** The lock with which records are saved one after another. */
  readonly turn: Semaphore.Semaphore
}

/** Runs the trials of a study that have not ended yet, at most `workers` at a time. Returns the records of all trials. */
export const runTrials = Effect.fnUntraced(function* (
  tuned: Tuned,
  folder: StudyFolder,
  how: { readonly workers: number; readonly command: string; readonly watched: TrialEvents },
) {
  const { study, resultsDir, time, file } = folder
  const concurrency = Math.min(how.workers, study.settings.parallel)
  const { input } = tuned
  const records = Array.from({ length: study.settings.trials }, (_, at) => folder.trials.at(at))
  const trials: Trials = {
    tuned,
    folder,
    watched: how.watched,
    trainRun: yield* makeTrainRun({ input, resultsDir, time, commit: file.commit, command: how.command, concurrency }),
    records,
    ends: yield* Effect.all(records.map(() => Deferred.make<Trial>())),
    suggestions: folder.trials.map(({ params }) => params),
    turn: yield* Semaphore.make(1),
  }
  yield* Effect.forEach(
    records.map((_, number) => number),
    (number) => runTrial(trials, number),
    { concurrency, discard: true },
  )
  return records.flatMap((record) => record ?? [])
})

/** Waits for the earlier trials whose results this trial needs, then runs the trial and records it. */
const runTrial = Effect.fnUntraced(function* (trials: Trials, number: number) {
  const { folder, records, ends, watched } = trials
  const before = records[number]
  const known = yield* Effect.forEach(ends.slice(0, knownAt(number, folder.study.settings.parallel)), Deferred.await)
  if (before === undefined) watched.started(number)
  const record = before ?? (yield* trialOf(trials, number, known))
  records[number] = record
  if (before === undefined) yield* save(trials)
  watched.ended(record, before !== undefined)
  yield* Deferred.succeed(ends[number], record)
  yield* refuseFailures(records)
})

/** Trains the runs of a trial until one of them is worse than its limits, and returns the trial's record. */
const trialOf = Effect.fnUntraced(function* (trials: Trials, number: number, known: ReadonlyArray<Trial>) {
  const { tuned, folder } = trials
  const { study } = folder
  const params = paramsOf(trials, number, known)
  const limits = limitsOfTrial(study, known, folder.file.base)
  const runs: Array<TrialRun> = []
  const curves: Array<ReadonlyArray<TrialPoint>> = []
  const recordOf = (state: Trial["state"], reason: string | null): Trial => {
    const values = runs.flatMap(({ value }) => value ?? [])
    const value = state === "failed" || values.length === 0 ? null : meanOf(values)
    return { trial: number, state, value, reason, params, runs, curve: meanCurve(curves) }
  }
  const planned = yield* Effect.result(planTrial(tuned, study, { number, params, limits }))
  if (planned._tag === "Failure") return recordOf("failed", messageOf(planned.failure))
  for (const run of planned.success) {
    const outcome = yield* Effect.result(train(trials, run))
    if (outcome._tag === "Failure") {
      if (!isRunError(outcome.failure)) return yield* outcome.failure
      return recordOf("failed", outcome.failure.message)
    }
    const { result, curve } = outcome.success
    runs.push({
      seed: run.identity.seed,
      path: relative(pathOf(folder), result.runDir).replaceAll("\\", "/"),
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
  // A run that never had a score (no episode has ended, for example) can't be compared.
  return runs.some(({ value }) => value === null)
    ? recordOf("failed", "a run has no score")
    : recordOf("finished", null)
})

/** Suggests the settings of a trial, from the results of the earlier trials that it needs. */
const paramsOf = (trials: Trials, number: number, ended: ReadonlyArray<Trial>): Params => {
  const { suggestions } = trials
  const { study } = trials.folder
  const known = knownAt(number, study.settings.parallel)
  const pending: Array<Params> = []
  for (let before = known; before < number; before++) pending.push(paramsOf(trials, before, ended))
  return (suggestions[number] ??= suggest(study, number, { ended: ended.slice(0, known), pending }))
}

/** Trains a run or resumes it. If the run has already ended, reads its result. */
const train = Effect.fnUntraced(function* ({ tuned, folder, trainRun }: Trials, run: PlannedRun) {
  const { resultsDir, time, file } = folder
  const path = join(resultsDir, toPath({ ...run.identity, time, commit: file.commit }))
  yield* untilReleased(path)
  // If an earlier record was lost or edited, a later run may have been started with other settings than those suggested now.
  const started = (yield* exists(path))
    ? yield* checkStarted({ directory: path, state: yield* stateOf(path) }, run)
    : undefined
  if (started?.state === "finished") return yield* finishedEarlier(path)
  yield* refuseUnfinished(tuned.input.cluster, started)
  return yield* trainRun(run, started, () => {})
})

/** Saves the records up to the first trial that has not ended. */
const save = ({ folder, records, turn }: Trials) =>
  turn.withPermits(1)(
    Effect.suspend(() => {
      const missing = records.findIndex((record) => record === undefined)
      return saveTrials(
        pathOf(folder),
        records.slice(0, missing < 0 ? records.length : missing).flatMap((record) => record ?? []),
      )
    }),
  )

/** The milliseconds between two checks of a run that another process still writes, and the largest number of checks. */
const pause = 100
const mostLooks = 600

/**
 * Waits until no other process writes the run in a folder. After a study was killed, the processes of its runs still need a
 * moment to save their work. A run that is locked by such a process has not failed.
 */
const untilReleased = Effect.fnUntraced(function* (path: string) {
  for (let look = 0; (yield* readRunIn(path).state) === "running"; look++) {
    if (look === mostLooks)
      return yield* new CommandError({
        reason: "failed",
        message: `${path}: another process is writing this run; wait until it ends, or stop it`,
      })
    // This waits in real time: a test may have stopped the program's clock, but it can't stop the other process.
    yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, pause)))
  }
})

/**
 * Refuses to continue on a cluster a run that this machine started: the worker would not find the files that are saved here.
 */
const refuseUnfinished = (cluster: Option.Option<string>, started: StartedRun | undefined) =>
  Option.isSome(cluster) && started?.state === "unfinished"
    ? Effect.fail(
        new CommandError({
          reason: "failed",
          message: `${started.directory}: a cluster can't train a saved run further; resume without --cluster`,
        }),
      )
    : Effect.void

/** Gives up if the first trials have all failed, because then the training itself is broken. */
const refuseFailures = (records: ReadonlyArray<Trial | undefined>) => {
  const first = records.slice(0, Math.min(mostFailures, records.length))
  if (!first.every((record) => record?.state === "failed")) return Effect.void
  const which = first.length === 1 ? "the only trial" : `the first ${first.length} trials`
  return Effect.fail(CommandError.failed(`${which} failed: ${first[0]?.reason ?? ""}`))
}
