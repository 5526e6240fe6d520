/**
 * Implements `effect eval tasks.yaml`: runs or resumes the evaluation in a YAML file, saves it in a folder, and prints its
 * tables.
 */
import { dirname, join } from "node:path"
import { Effect, Layer, Option } from "effect"
import { isPlain } from "../../../base/config/Config.ts"
import { exists } from "../../../base/config/files.ts"
import type { EvaluationOptions } from "../../../agents/evaluate/Evaluations.ts"
import { backend, platform, recorder, runStore, terminalProgress } from "../../../node.ts"
import { findRuns } from "../../../run/find/find-node.ts"
import { newestFirst } from "../../../run/find/RunEntry.ts"
import { isSameName } from "../../../run/identifier.ts"
import * as Layout from "../../../run/Layout.ts"
import { silentSource } from "../../../run/read/disk-node.ts"
import { kindOf, refuseUnknownKind } from "../../../run/RunSpec.ts"
import { logsDir } from "../../../agents/training/logsDir.ts"
import { evaluations, printRun, readRun, runToResumeAt } from "../findRun.ts"
import { defaultResultsDir, flagWords, nameOf, quoted } from "../flags.ts"
import { usageError, writeJson, writeOut } from "../output/output.ts"
import { readMetrics, runToEnd } from "../run/finished.ts"
import { parseSetting } from "../run/overrides.ts"
import { withConfigs } from "../trust/ownFiles.ts"
import { ownPlace } from "../userCode/loadTraining.ts"
import { notKeys, readLocatedYaml } from "../userCode/yamlFile.ts"
import { dispatcherLayer, resumedCluster } from "../worker/cluster.ts"
import { refuseFailures } from "./failures.ts"
import { evaluationText } from "./showEvaluation.ts"
import type { EvalFlags } from "./flags.ts"

export const evaluateFile = (input: EvalFlags) => evaluateConfig(input).pipe(withConfigs(input.target))

const evaluateConfig = Effect.fnUntraced(function* (input: EvalFlags) {
  const { target: file, json, quiet } = input
  const { value: config, lines } = yield* readLocatedYaml(file)
  if (!isPlain(config)) return yield* notKeys(file, config)
  yield* refuseUnknownKind(config, { source: file, sources: lines })
  const kind = kindOf(config)
  // A file without `kind` may be an evaluation that lacks its data set.
  if (kind !== "evaluation" && (kind !== "training" || "kind" in config || "env" in config)) {
    const hint = `train it with effect run ${file}, then evaluate the run with effect eval RUN`
    return yield* usageError(`${file}: this is a training, not an evaluation (it has no dataset); ${hint}`)
  }
  const name = nameOf({ ...input, file })
  const resume = yield* runToResume(input, name)
  if (resume !== undefined && !quiet && !json) yield* printRun(input.resume, resume)
  const overrides = [
    ...Option.toArray(input.name).map((value) => ({ path: "name", value, source: "--name" })),
    ...(yield* Effect.forEach(input.set, parseSetting)),
  ]
  return yield* playEvaluation(input, config, {
    baseDir: dirname(file),
    source: file,
    name,
    overrides,
    lines,
    resume,
    resumeCommand: (directory) => resumeCommand(input, directory),
  })
})

/** Describes where the config of an evaluation comes from, and how the evaluation is resumed. */
interface EvaluationSource extends Omit<EvaluationOptions, "placeOf"> {
  /** The folder of the evaluation to resume. */
  readonly resume?: string | undefined
  readonly resumeCommand: (directory: string) => string
}

/** Plays or resumes the evaluation that a config describes, saves it in a folder, and prints its tables. */
export const playEvaluation = Effect.fnUntraced(function* (
  { resultsDir, quiet, json, backend: device, cluster, maxFailures }: EvalFlags,
  config: unknown,
  { resume, resumeCommand, ...options }: EvaluationSource,
) {
  const { EvaluationResult, fromConfig } = yield* Effect.promise(
    () => import("../../../agents/evaluate/Evaluations.ts"),
  )
  const evaluation = fromConfig(config, {
    ...options,
    placeOf: (resultsDir) => Effect.map(logsDir(resultsDir), (placed) => ({ resultsDir: placed })),
  })
  const storeOptions = {
    resultsDir,
    // The file may name its own results folder, unless the user typed --results-dir.
    ownPlaces: resultsDir === defaultResultsDir,
    ...(resume === undefined ? {} : { resume }),
  }
  const sinks = recorder(...(quiet ? [] : [terminalProgress]))
  yield* runToEnd(
    (onOpen) =>
      Effect.provide(
        evaluation,
        Layer.mergeAll(
          backend(device),
          platform,
          sinks,
          runStore({ ...storeOptions, onOpen }),
          dispatcherLayer(cluster),
        ),
      ),
    {
      read: (directory) => readMetrics(directory, EvaluationResult),
      finished: (result) => {
        const shown = json ? writeJson(result) : quiet ? Effect.void : Effect.flatMap(evaluationText(result), writeOut)
        return Effect.andThen(shown, refuseFailures(result, maxFailures))
      },
      resumeCommand,
      advises: resume === undefined,
      directory: resume,
    },
  )
})

/** Returns the command that resumes the evaluation, with all flags except those that change only what is printed. */
const resumeCommand = (
  { target, set, name, resultsDir, cluster, maxFailures }: EvalFlags,
  directory: string,
): string => {
  const place = resultsDir === defaultResultsDir ? undefined : resultsDir
  const words = flagWords({
    resume: directory,
    set,
    name,
    "results-dir": place,
    cluster: resumedCluster(cluster),
    "max-failures": maxFailures.typed === "0" ? undefined : maxFailures.typed,
  })
  return `npx effect eval ${quoted([target, ...words])}`
}

/**
 * Returns the folder of the evaluation that `--resume` names; undefined without that flag. `latest` means the newest
 * unfinished evaluation with the name of this file. If none is unfinished, it means the newest finished one, whose result is
 * printed again.
 */
const runToResume = Effect.fnUntraced(function* (input: EvalFlags, nameOfFile: string) {
  if (Option.isNone(input.resume)) return undefined
  const wanted = input.resume.value
  if (yield* exists(join(wanted, Layout.config))) return wanted
  const own = yield* ownPlace(input.target)
  const folders = own.resultsDir === undefined ? [input.resultsDir] : [input.resultsDir, own.resultsDir]
  if (wanted !== "latest") return yield* runToResumeAt(wanted, { folders, usable: evaluations })
  const name = Option.isNone(input.name) && own.name !== undefined ? own.name : nameOfFile
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
