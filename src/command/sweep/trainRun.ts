/**
 * Trains the runs of a sweep one by one, in processes of this machine or on a cluster. A study also trains its trials with
 * it.
 */
import { Effect, FileSystem, Option } from "effect"
import { messageOf } from "../../base/text/text.ts"
import { toPath } from "../../run/identifier.ts"
import { MetricAlerts } from "../cli/alerts/MetricAlerts.ts"
import { threadsOfEach } from "../cli/flags.ts"
import type { Finished } from "../cli/run/finished.ts"
import { RunCommand, trainInChild } from "./child.ts"
import { argumentsOf, type TrainFlags } from "./command.ts"
import type { StartedRun } from "./folder.ts"
import { spreadCommand } from "./job.ts"
import type { SweepProgress } from "./part.ts"
import { SweepPlace } from "./place.ts"
import type { PlannedRun } from "./plan.ts"
import { CommandError } from "../CommandError.ts"

interface OfSweep {
  readonly input: TrainFlags
  readonly resultsDir: string
  /** The time and the commit in the paths of all runs of the sweep. */
  readonly time: string
  readonly commit: string
  /** The command that resumes the sweep. */
  readonly command: string
  /** The number of runs that are trained at a time. */
  readonly concurrency: number
}

/** Makes the function that trains a run of a sweep, or resumes it in the folder where it was started earlier. */
export const makeTrainRun = Effect.fnUntraced(function* (ofSweep: OfSweep) {
  const { resultsDir, time, commit, command, concurrency } = ofSweep
  const isAlone = concurrency === 1 && Option.isNone(ofSweep.input.cluster)
  const threads = isAlone ? ofSweep.input.threads : Option.map(ofSweep.input.threads, threadsOfEach)
  const input = { ...ofSweep.input, threads }
  const place = yield* SweepPlace
  const fs = yield* FileSystem.FileSystem
  const spread = Option.isSome(input.cluster) ? yield* spreadCommand : undefined
  const ownCommand = yield* RunCommand
  const passOn = yield* MetricAlerts
  const trainRun = Effect.fnUntraced(function* (
    run: PlannedRun,
    started: StartedRun | undefined,
    onProgress: (progress: SweepProgress) => void,
  ) {
    // A run without a config can't be resumed, and its folder would prevent a new run at that path.
    if (started?.state === "empty") {
      const emptied = fs.remove(started.directory, { recursive: true, force: true })
      yield* Effect.mapError(emptied, (error) => CommandError.run(messageOf(error)))
    }
    const resume = started?.state === "unfinished" ? started.directory : undefined
    const part = { time, commit, population: run.population, command }
    if (spread === undefined)
      return yield* trainInChild({ args: argumentsOf(input, run, resultsDir, resume), part, onProgress }).pipe(
        Effect.provideService(RunCommand, place.training(ownCommand)),
      )
    if (resume !== undefined) {
      const message = `${resume}: a cluster can't train a saved run further; resume without --cluster`
      return yield* CommandError.run(message)
    }
    const onCluster = spread({
      files: [input.file, ...Option.toArray(input.config)],
      resultsDir: place.shown(resultsDir),
      path: toPath({ ...run.identity, time, commit }),
    })
    return yield* trainInChild({ args: argumentsOf(input, run, undefined, undefined), part, onProgress }).pipe(
      Effect.provideService(RunCommand, place.training(onCluster)),
    )
  })
  /** Passes the validations of a finished run on to the alerts of the command. */
  const tellAlerts = ({ result, curve }: Finished, run: PlannedRun) =>
    passOn(
      curve.map(({ step, value }) => ({
        facts: { run: place.shown(result.runDir), seed: run.identity.seed },
        step,
        values: { "validation/score": value },
      })),
    )
  return (...args: Parameters<typeof trainRun>) =>
    Effect.tap(trainRun(...args), (finished) => tellAlerts(finished, args[0]))
})
