import { join } from "node:path"
import { Effect, Layer, Option } from "effect"
import { dateOf } from "../../run/identifier.ts"
import { backend, envPool, platform, recorder, runStore, terminalProgress } from "../../node.ts"
import { LmError } from "../../lm/LmError.ts"
import { csv } from "../../run/record/csv.ts"
import { telemetry } from "../../run/record/telemetry.ts"
import { RunOptions } from "../../train/RunOptions.ts"
import type { RunResult } from "../../run/RunResult.ts"
import { kindOf } from "../../run/RunSpec.ts"
import { digestIn } from "../replay/digestIn.ts"
import { defaultResultsDir, flagWords, type Given, nameOf, quoted } from "../flags.ts"
import { tellRun } from "../findRun.ts"
import { finishedAt, type Opened, unlessFinished } from "./unlessFinished.ts"
import { loadTraining, readYaml, type Training } from "../userCode/loadTraining.ts"
import { overridesOf } from "./overrides.ts"
import { readFinished } from "../sweep/child.ts"
import { noteSweep, refuseOtherFile, runToResume } from "./runToResume.ts"
import { stepSignalled } from "./stepSignal.ts"
import { PartOfSweep, sweepProgress } from "../sweep/part.ts"
import { writeError, writeOut } from "../output/output.ts"
import type { UsageError } from "../UsageError.ts"
import * as Layout from "../../run/Layout.ts"

/** One training, in this process. */
export const trainOnce = Effect.fnUntraced(function* (
  given: Given,
): Effect.fn.Return<void, Effect.Error<Training> | UsageError> {
  const isStepWanted = yield* stepSignalled
  const name = nameOf(given)
  const training = yield* loadTraining(given.file)
  const resume = yield* runToResume(given, name)
  const part = yield* PartOfSweep
  if (resume !== undefined && part === undefined) yield* refuseOtherFile(given, training, resume)
  if (resume !== undefined && part === undefined && !given.quiet && !given.json) {
    yield* tellRun(
      Option.getOrElse(given.resume, () => resume),
      resume,
    )
  }
  const overrides = yield* overridesOf(given, resume)

  const digestBefore = resume === undefined ? undefined : yield* digestIn(resume)

  let opened: Opened | undefined
  // What OpenTelemetry's own tools call it.
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
      // A results folder given on the command line goes before the one that the file names.
      ownPlaces: part === undefined && given.resultsDir === defaultResultsDir,
      ...(time === undefined || part === undefined ? {} : { time, commit: part.commit }),
      onOpen: (directory) =>
        Effect.sync(() => void (opened = { directory, finishedAt: finishedAt(directory) })).pipe(
          Effect.andThen(part === undefined ? Effect.void : Effect.ignore(noteSweep(directory, part.command))),
        ),
      ...(resume === undefined ? {} : { resume }),
    }),
  )
  const work = training.pipe(
    Effect.provideService(RunOptions, {
      overrides,
      source: given.file,
      name,
      population: part?.population ?? {},
      isStepWanted,
    }),
    Effect.provide(otlp === undefined ? layers : Layer.merge(layers, otlpLayer(otlp))),
    // What was played is saved, and whatever the model wants can be given to it.
    Effect.catchTag("LmError", (error) =>
      Effect.fail(
        opened === undefined
          ? error
          : new LmError({
              ...error,
              message: `${error.message}; resume with: ${resumeCommand(given, opened.directory, error.remedy)}`,
            }),
      ),
    ),
  )
  yield* unlessFinished(work, () => opened, {
    read: (directory) => Effect.map(readFinished(directory), ({ result }) => result),
    finished: (result) => {
      if (given.json) return writeOut(`${JSON.stringify(result)}\n`)
      if (given.quiet) return Effect.void
      if (resume === undefined || result.digest !== digestBefore) return writeOut(summary(result))
      return Effect.flatMap(furtherHint(resume), (hint) =>
        writeOut(`this run is finished, and nothing has changed; ${hint}\n${summary(result)}`),
      )
    },
    interrupted: Effect.suspend(() =>
      opened === undefined
        ? Effect.void
        : writeError(`\ninterrupted; resume with: ${resumeCommand(given, opened.directory)}\n`),
    ),
  })
})

/** Says how a finished run of this kind is trained further. */
const furtherHint = (run: string): Effect.Effect<string> =>
  readYaml(join(run, Layout.config)).pipe(
    Effect.orElseSucceed(() => undefined),
    Effect.map(kindOf),
    Effect.map(
      (kind) =>
        `train it further with a larger ${kind === "agents" ? "--set runtime.max_envs_to_visit=N" : "--total-steps"}`,
    ),
  )

/** Loaded only when it is asked for. */
const otlpLayer = (baseUrl: string) =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("./otlp.ts")),
      ({ layer }) => layer(baseUrl),
    ),
  )

/** The backend is part of what makes a run the same to the bit. */
const resumeCommand = (given: Given, directory: string, remedy?: string): string => {
  const { file, backend: name, resultsDir } = given
  const words = [file, "--resume", directory, ...flagWords("name", given.name), ...flagWords("config", given.config)]
  // Without these, the file would be another training than the run's.
  for (const setting of given.set) if (/^(env|algorithm)(\.name)?=/.test(setting)) words.push("--set", setting)
  if (remedy !== undefined) words.push("--set", `agent.lm_config.${remedy}`)
  if (name !== "auto") words.push("--backend", name)
  if (resultsDir !== "results") words.push("--results-dir", resultsDir)
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
