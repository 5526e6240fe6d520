/**
 * Implements `effect eval FILE`: runs or resumes the evaluation in a YAML file or in a module, saves it in a folder, and
 * prints its tables.
 */
import { join } from "node:path"
import { Effect, Layer, Option } from "effect"
import { ConfigError } from "../../../base/config/Config.ts"
import { exists } from "../../../base/files/files.ts"
import { backend, envPool, platform, recorder, runStore, terminalProgress } from "../../../node.ts"
import { findRuns } from "../../../run/find/find-node.ts"
import { newestFirst } from "../../../run/find/RunEntry.ts"
import { isSameName } from "../../../run/identifier.ts"
import * as Layout from "../../../run/Layout.ts"
import { silentSource } from "../../../run/read/disk-node.ts"
import { RunOptions } from "../../../run/RunOptions.ts"
import { kindOf } from "../../../run/RunSpec.ts"
import { alertSinks } from "../alerts/flag.ts"
import { evaluations, printRun, readRun, runToResumeAt } from "../findRun.ts"
import { defaultResultsDir, flagWords, nameOf, quoted } from "../flags.ts"
import { usageError } from "../output/output.ts"
import { readMetrics, runToEnd } from "../run/finished.ts"
import { withFindRun } from "../run/finding.ts"
import { parseSetting } from "../run/overrides.ts"
import { telemetryLayer } from "../telemetry/telemetry.ts"
import { withConfigs } from "../trust/ownFiles.ts"
import { ownPlace } from "../userCode/loadTraining.ts"
import { isConfig } from "../userCode/yamlFile.ts"
import { dispatcherLayer, resumedCluster } from "../worker/cluster.ts"
import { conclude } from "./conclude.ts"
import { gateProblem, gatesOf } from "./gates.ts"
import { type LoadedEvaluation, loadEvaluation, notAnEvaluation } from "./loadEvaluation.ts"
import { evaluationText } from "./showEvaluation.ts"
import { type EvalFlags, judgingFlags } from "./flags.ts"

export const evaluateFile = (input: EvalFlags) =>
  evaluateHere(input).pipe(withFindRun(input), withConfigs(input.target))

const evaluateHere = Effect.fnUntraced(function* (input: EvalFlags) {
  const { target: file, json, quiet } = input
  const name = nameOf({ ...input, file })
  const overrides = [
    ...Option.toArray(input.name).map((value) => ({ path: "name", value, source: "--name" })),
    ...Option.toArray(input.seed).map((value) => ({ path: "seed", value, source: "--seed" })),
    ...(yield* Effect.forEach(input.set, parseSetting)),
  ]
  const options: RunOptions = { overrides, source: file, name }
  const evaluation = yield* loadEvaluation(file)
  const resume = yield* runToResume(input, evaluation, options)
  if (resume !== undefined && !quiet && !json) yield* printRun(input.resume, resume)
  return yield* playEvaluation(input, evaluation, {
    options,
    program: isConfig(file) ? undefined : file,
    resume,
    resumeCommand: (directory) => resumeCommand(input, directory),
  })
})

/** Describes how an evaluation is started and resumed. */
interface EvaluationStart {
  /** The settings that replace those of the evaluation, and the names of the config and of the run. */
  readonly options: RunOptions
  /** The module of the evaluation, which is saved in the run's folder. */
  readonly program?: string | undefined
  /** The folder of the evaluation to resume. */
  readonly resume?: string | undefined
  readonly resumeCommand: (directory: string) => string
}

/** Plays or resumes an evaluation, saves it in a folder, and prints its tables. */
export const playEvaluation = Effect.fnUntraced(function* (
  input: EvalFlags,
  evaluation: LoadedEvaluation,
  { options, program, resume, resumeCommand }: EvaluationStart,
) {
  const { resultsDir, quiet, backend: device, cluster } = input
  const gates = yield* gatesOf(input)
  const { EvaluationResult } = yield* Effect.promise(() => import("../../../agents/evaluate/result.ts"))
  const storeOptions = {
    resultsDir,
    program,
    // The file may name its own results folder, unless the user typed --results-dir.
    ownPlaces: resultsDir === defaultResultsDir,
    ...(resume === undefined ? {} : { resume }),
  }
  const sinks = recorder(...(quiet ? [] : [terminalProgress]), ...(yield* alertSinks(input.alert)))
  const onPlanned: RunOptions["onPlanned"] = (_, effective) => {
    if (kindOf(effective) !== "evaluation")
      return Effect.fail(refusal(notAnEvaluation(options.source, "it has no tasks to evaluate on")))
    const problem = gateProblem(gates, effective)
    return problem === undefined ? Effect.void : Effect.fail(refusal(problem))
  }
  const run = Effect.provideService(evaluation, RunOptions, { ...options, onPlanned })
  yield* runToEnd(
    (onOpen) =>
      Effect.provide(
        run,
        Layer.mergeAll(
          backend(device),
          envPool,
          platform,
          sinks,
          runStore({ ...storeOptions, onOpen }),
          dispatcherLayer(cluster),
          telemetryLayer,
        ),
      ),
    {
      read: (directory) => readMetrics(directory, EvaluationResult),
      finished: (result) => conclude(input, result, { gates, text: evaluationText }),
      resumeCommand,
      advises: resume === undefined,
      directory: resume,
    },
  )
})

/** Makes the error of a run that is refused before it starts. */
const refusal = (message: string): ConfigError => new ConfigError({ source: "", key: "", problem: message, message })

/** Returns the command that resumes the evaluation, with all flags except those that change only what is printed. */
const resumeCommand = (input: EvalFlags, directory: string): string => {
  const { target, set, name, seed, resultsDir, cluster } = input
  const place = resultsDir === defaultResultsDir ? undefined : resultsDir
  const words = flagWords({
    resume: directory,
    set,
    name,
    seed,
    "results-dir": place,
    cluster: resumedCluster(cluster),
    ...judgingFlags(input),
  })
  return `npx effect eval ${quoted([target, ...words])}`
}

/**
 * Returns the folder of the evaluation that `--resume` names; undefined without that flag. `latest` means the newest
 * unfinished evaluation with the name of this file. If none is unfinished, it means the newest finished one, whose result is
 * printed again.
 */
const runToResume = Effect.fnUntraced(function* (input: EvalFlags, evaluation: LoadedEvaluation, options: RunOptions) {
  if (Option.isNone(input.resume)) return undefined
  const wanted = input.resume.value
  if (yield* exists(join(wanted, Layout.config))) return wanted
  const own = yield* ownPlace(input.target)
  const folders = own.resultsDir === undefined ? [input.resultsDir] : [input.resultsDir, own.resultsDir]
  if (wanted !== "latest") return yield* runToResumeAt(wanted, { folders, usable: evaluations })
  const name = yield* nameOfEvaluation(input, evaluation, options)
  const entries = (yield* Effect.forEach(folders, (folder) => findRuns(folder, silentSource))).flat()
  const ofThisName = yield* Effect.filter(
    entries,
    Effect.fnUntraced(function* (entry) {
      const saved = entry.name ?? (yield* readRun(entry).configAt(["name"]))
      return typeof saved !== "string" || isSameName(saved, name)
    }),
  )
  let newestFinished: string | undefined
  for (const entry of newestFirst(ofThisName)) {
    const { path } = entry
    const isFinished = yield* exists(join(path, Layout.returns))
    if (!isFinished && (yield* exists(join(path, Layout.evaluation.journal)))) return path
    if (isFinished && newestFinished === undefined && (yield* evaluations.isUsable(entry))) newestFinished = path
  }
  if (newestFinished !== undefined) return newestFinished
  const message = `--resume latest: there is no evaluation named ${name} in ${folders.join(" or ")}`
  return yield* usageError(message)
})

/** Returns the name that a new run of the file would have. */
const nameOfEvaluation = Effect.fnUntraced(function* (
  { target, name }: EvalFlags,
  evaluation: LoadedEvaluation,
  options: RunOptions,
) {
  if (Option.isSome(name)) return name.value
  if (isConfig(target)) return (yield* ownPlace(target)).name ?? options.name
  const { plannedOf } = yield* Effect.promise(() => import("../../sweep/plan.ts"))
  const planned = yield* Effect.option(plannedOf(evaluation, options))
  return Option.match(planned, { onNone: () => options.name, onSome: ({ identity }) => identity.name })
})
