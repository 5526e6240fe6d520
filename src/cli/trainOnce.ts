import { existsSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Cause, Effect, Exit, Layer, Option } from "effect"
import { mostBytes } from "../config/files.ts"
import { readTextWithin } from "../config/files-node.ts"
import { isPlain } from "../config/Config.ts"
import { dateOf, isSameName } from "../experiment/identifier.ts"
import { backend, envPool, platform, recorder, runStore, terminalProgress } from "../node.ts"
import { LmError } from "../lm/LmError.ts"
import { csv } from "../record/csv.ts"
import { telemetry } from "../record/telemetry.ts"
import { newestFirst } from "../runs/RunEntry.ts"
import { diskSource, findRuns } from "../runs/source-node.ts"
import { RunOptions } from "../train/RunOptions.ts"
import type { RunResult } from "../train/RunResult.ts"
import { digestIn } from "./digestIn.ts"
import { defaultResultsDir, type Given, nameOf, quoted } from "./flags.ts"
import { ofKind, runToResumeAt } from "./findRun.ts"
import { loadTraining, ownPlace, readYaml, type Training } from "./loadTraining.ts"
import { overridesOf } from "./overrides.ts"
import { stepSignalled } from "./stepSignal.ts"
import { partOfSweep, sweepProgress } from "./sweep/part.ts"
import { UsageError } from "./UsageError.ts"

/** One training, in this process. */
export const trainOnce = Effect.fnUntraced(function* (
  given: Given,
): Effect.fn.Return<void, Effect.Error<Training> | UsageError> {
  const isStepWanted = yield* stepSignalled
  const name = nameOf(given)
  const training = yield* loadTraining(given.file)
  const resume = yield* runToResume(given, name)
  const part = partOfSweep()
  const overrides = yield* overridesOf(given, resume)

  const digestBefore = resume === undefined ? undefined : yield* digestIn(resume)

  let directory = resume
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
      // Who says here where runs are to be kept is heard before the file.
      ownPlaces: part === undefined && given.resultsDir === defaultResultsDir,
      ...(time === undefined || part === undefined ? {} : { time, commit: part.commit }),
      onOpen: (opened) =>
        Effect.sync(() => void (directory = opened)).pipe(
          Effect.andThen(part === undefined ? Effect.void : Effect.ignore(noteSweep(opened, part.command))),
        ),
      ...(resume === undefined ? {} : { resume }),
    }),
  )
  const result = yield* training.pipe(
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
        directory === undefined
          ? error
          : new LmError({
              ...error,
              message: `${error.message}; to go on: ${resumeCommand(given, directory, error.remedy)}`,
            }),
      ),
    ),
    Effect.onExit((exit) =>
      Effect.sync(() => {
        if (Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) && directory !== undefined) {
          process.stderr.write(`\ninterrupted; to go on: ${resumeCommand(given, directory)}\n`)
        }
      }),
    ),
  )
  if (given.json) process.stdout.write(`${JSON.stringify(result)}\n`)
  else if (!given.quiet) {
    const idle = result.digest === digestBefore ? `it was finished already, and nothing has changed; ${further}\n` : ""
    process.stdout.write(`${idle}${summary(result)}`)
  }
})

/** What makes a finished run a beginning. */
const further = "a larger --total-steps (of agents that talk: --set runtime.max_envs_to_visit=…) has it go on"

/** Loaded only when it is asked for. */
const otlpLayer = (baseUrl: string) =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("./otlp.ts")),
      ({ layer }) => layer(baseUrl),
    ),
  )

/** The backend is part of what makes a run the same to the bit. */
const resumeCommand = ({ file, backend: name, resultsDir }: Given, directory: string, remedy?: string): string => {
  const words = [file, "--resume", directory]
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

const trainings = ofKind("a training", "training", "experiment")

const runToResume = Effect.fnUntraced(function* (
  given: Given,
  nameOfFile: string,
): Effect.fn.Return<string | undefined, UsageError> {
  if (Option.isNone(given.resume)) return undefined
  const wanted = given.resume.value
  if (existsSync(join(wanted, "config.yaml"))) return wanted
  const own = yield* ownPlace(given.file, yield* overridesOf(given, undefined))
  const { name = nameOfFile } = own
  const places = own.resultsDir === undefined ? [given.resultsDir] : [given.resultsDir, own.resultsDir]
  if (wanted !== "latest") return yield* runToResumeAt(wanted, { folders: places, usable: trainings })
  const unfinished = newestFirst((yield* Effect.forEach(places, unfinishedRuns)).flat())
  const newest = unfinished.find((run) => run.name !== undefined && isSameName(run.name, name))
  if (newest !== undefined) {
    const command = yield* sweepCommand(newest.path)
    if (command === undefined) return newest.path
    const message = `--resume latest: the newest unfinished run, ${newest.path}, is one of a sweep, which goes on by: ${command}; that run alone goes on by --resume ${newest.path}`
    return yield* new UsageError({ message })
  }
  const [other] = unfinished
  const hint = other === undefined ? "" : `; the newest unfinished one is ${other.path}`
  const message = `--resume latest: there is no unfinished run named ${name} in ${places.join(" or ")}${hint}`
  return yield* new UsageError({ message })
})

/** A run that is one of a sweep has the sweep's command beside its files. */
const sweepFile = "sweep.txt"

const noteSweep = (directory: string, command: string) =>
  Effect.tryPromise(() => writeFile(join(directory, sweepFile), `${command}\n`))

const sweepCommand = (directory: string): Effect.Effect<string | undefined> =>
  Effect.promise(() =>
    readTextWithin(join(directory, sweepFile), mostBytes.text).then(
      (text) => text.trim(),
      () => undefined,
    ),
  )

/** Of a run whose path doesn't say it. */
const nameIn = (directory: string): Effect.Effect<string | undefined> =>
  Effect.match(readYaml(join(directory, "config.yaml")), {
    onFailure: () => undefined,
    onSuccess: (config) => (isPlain(config) && typeof config.name === "string" ? config.name : undefined),
  })

const unfinishedRuns = Effect.fnUntraced(function* (resultsDir: string) {
  const entries = yield* findRuns(
    resultsDir,
    diskSource(() => Effect.void),
  )
  const unfinished = entries.filter(
    ({ path }) => existsSync(join(path, "config.yaml")) && !existsSync(join(path, "return.json")),
  )
  return yield* Effect.forEach(unfinished, (entry) =>
    entry.name === undefined ? Effect.map(nameIn(entry.path), (name) => ({ ...entry, name })) : Effect.succeed(entry),
  )
})
