import { join } from "node:path"
import { Effect, FileSystem, Layer, Option } from "effect"
import { LmError } from "../../lm/LmError.ts"
import { backend, envPool, platform, recorder, runStore, terminalProgress } from "../../node.ts"
import { dateOf } from "../../run/identifier.ts"
import * as Layout from "../../run/Layout.ts"
import { csv } from "../../run/record/csv.ts"
import { telemetry } from "../../run/record/telemetry.ts"
import type { RunResult } from "../../run/RunResult.ts"
import { kindOf } from "../../run/RunSpec.ts"
import { RunOptions } from "../../train/RunOptions.ts"
import { printRun } from "../findRun.ts"
import { defaultResultsDir, flagWords, type Given, nameOf, quoted } from "../flags.ts"
import type { UsageError } from "../output/errors.ts"
import { writeError, writeOut } from "../output/output.ts"
import { PartOfSweep, sweepProgress } from "../sweep/part.ts"
import { loadTraining, type Training } from "../userCode/loadTraining.ts"
import { readYaml } from "../userCode/yamlFile.ts"
import { digestIn, openedRun, readFinished, reportEnd } from "./finished.ts"
import { overridesOf } from "./overrides.ts"
import { refuseOtherFile, runToResume, writeSweepCommand } from "./runToResume.ts"
import { stepSignalled } from "./stepSignal.ts"

/** Runs one training in this process. */
export const trainOnce = Effect.fnUntraced(function* (
  given: Given,
): Effect.fn.Return<void, Effect.Error<Training> | UsageError, FileSystem.FileSystem> {
  const isStepWanted = yield* stepSignalled
  const name = nameOf(given)
  const training = yield* loadTraining(given.file)
  const resume = yield* runToResume(given, name)
  const part = yield* PartOfSweep
  if (resume !== undefined && part === undefined) {
    yield* refuseOtherFile(given, training, resume)
    if (!given.quiet && !given.json) {
      yield* printRun(
        Option.getOrElse(given.resume, () => resume),
        resume,
      )
    }
  }
  const overrides = yield* overridesOf(given, resume)
  const digestBefore = resume === undefined ? undefined : yield* digestIn(resume)

  const fs = yield* FileSystem.FileSystem
  const opened = yield* openedRun
  // OpenTelemetry prescribes the name of this variable.
  const otlp = process.env.OTEL_EXPORTER_OTLP_ENDPOINT
  const time = dateOf(part?.time ?? "")
  const layers = Layer.mergeAll(
    backend(given.backend),
    envPool,
    platform,
    recorder(
      ...(given.csv ? [csv] : []),
      ...(otlp === undefined ? [] : [telemetry]),
      ...(given.quiet ? [] : [terminalProgress]),
      ...(part === undefined ? [] : [sweepProgress]),
    ),
    runStore({
      resultsDir: given.resultsDir,
      // --results-dir wins over the results folder that the file names.
      ownPlaces: part === undefined && given.resultsDir === defaultResultsDir,
      ...(time === undefined || part === undefined ? {} : { time, commit: part.commit }),
      onOpen: (directory) =>
        Effect.andThen(
          opened.onOpen(directory),
          part === undefined
            ? Effect.void
            : Effect.ignore(
                Effect.provideService(writeSweepCommand(directory, part.command), FileSystem.FileSystem, fs),
              ),
        ),
      ...(resume === undefined ? {} : { resume }),
    }),
  )
  const run = training.pipe(
    Effect.provideService(RunOptions, {
      overrides,
      source: given.file,
      name,
      population: part?.population ?? {},
      isStepWanted,
    }),
    Effect.provide(otlp === undefined ? layers : Layer.merge(layers, otlpLayer(otlp))),
    // All finished episodes are saved, so the user can resume after removing the cause.
    Effect.catchTag("LmError", (error) => {
      const directory = opened.directory()
      if (directory === undefined) return Effect.fail(error)
      const message = `${error.message}; resume with: ${resumeCommand(given, directory, error.remedy)}`
      return Effect.fail(new LmError({ ...error, message }))
    }),
  )
  yield* reportEnd(run, opened, {
    read: (directory) => Effect.map(readFinished(directory), ({ result }) => result),
    finished: Effect.fnUntraced(function* (result) {
      if (given.json) return yield* writeOut(`${JSON.stringify(result)}\n`)
      if (given.quiet) return
      if (resume !== undefined && result.digest === digestBefore) {
        yield* writeOut(`this run is finished, and nothing has changed; ${yield* howToTrainFurther(resume)}\n`)
      }
      yield* writeOut(summary(result))
    }),
    interrupted: (directory) => writeError(`\ninterrupted; resume with: ${resumeCommand(given, directory)}\n`),
  })
})

const howToTrainFurther = (run: string): Effect.Effect<string, never, FileSystem.FileSystem> =>
  readYaml(join(run, Layout.config)).pipe(
    Effect.orElseSucceed(() => undefined),
    Effect.map((config) => {
      const flag = kindOf(config) === "agents" ? "--set runtime.max_envs_to_visit=N" : "--total-steps"
      return `train it further with a larger ${flag}`
    }),
  )

/** Loads the OpenTelemetry exporter, which is large, only when it is needed. */
const otlpLayer = (baseUrl: string) =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("./otlp.ts")),
      ({ layer }) => layer(baseUrl),
    ),
  )

/** Returns the command that resumes a run. It names the backend, because another backend may not compute the same bits. */
const resumeCommand = (given: Given, directory: string, remedy?: string): string => {
  const { file, backend: name, resultsDir } = given
  const words = [file, "--resume", directory, ...flagWords("name", given.name), ...flagWords("config", given.config)]
  // Without these settings, `refuseOtherFile` would refuse the file as that of another training.
  for (const setting of given.set) if (/^(env|algorithm)(\.name)?=/.test(setting)) words.push("--set", setting)
  if (remedy !== undefined) words.push("--set", `agent.lm_config.${remedy}`)
  if (name !== "auto") words.push("--backend", name)
  if (resultsDir !== defaultResultsDir) words.push("--results-dir", resultsDir)
  return `npx effect run ${quoted(words)}`
}

const summary = (result: RunResult): string => {
  const { validation, meanReturn } = result
  const score =
    validation === null
      ? meanReturn === null
        ? "no episode ended"
        : `mean return ${meanReturn.toFixed(1)} over the last episodes`
      : `validation ${validation.meanReturn.toFixed(1)} ± ${validation.stdReturn.toFixed(1)} over ${validation.episodes} episodes`
  return [
    `${result.steps} steps, ${result.episodes} episodes in ${result.wallSeconds.toFixed(1)} s (${Math.round(result.stepsPerSecond)} steps/s)`,
    score,
    `digest ${result.digest.slice(0, 16)}`,
    result.runDir,
    "",
  ].join("\n")
}
