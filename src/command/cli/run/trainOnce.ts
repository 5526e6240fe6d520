/** Runs one training in this process, for `effect run`: saves it in its folder, and prints progress and a summary. */
import { join } from "node:path"
import { Effect, FileSystem, Layer, Option, Schema } from "effect"
import { watchModules } from "../../../spread/cluster/sent/loadedModules-node.ts"
import { asSentProgram } from "../../../spread/cluster/sent/sentFiles-node.ts"
import { mostBytes, readRunText } from "../../../base/files/files.ts"
import { isPlain } from "../../../base/config/plain.ts"
import { parsedJson, roundedSpeed, shownDigest, shownScore, shownSpread } from "../../../base/text/text.ts"
import { backend, trainerThreads, envPool, platform, recorder, runStore, terminalProgress } from "../../../node.ts"
import { dateOf } from "../../../run/identifier.ts"
import { dataAt } from "../../../run/find/Value.ts"
import * as Layout from "../../../run/Layout.ts"
import { csv } from "../../../run/record/csv.ts"
import { telemetry } from "../../../run/record/telemetry.ts"
import type { RunResult } from "../../../run/RunResult.ts"
import { kindOf } from "../../../run/RunSpec.ts"
import { RunOptions } from "../../../run/RunOptions.ts"
import { alertSinks } from "../alerts/flag.ts"
import { refuseFailures } from "../evaluate/failures.ts"
import { evaluationText } from "../evaluate/showEvaluation.ts"
import { printRun } from "../findRun.ts"
import { defaultResultsDir, flagWords, isBucket, nameOf, quoted, sessionOptions, threadsOfEach } from "../flags.ts"
import { writeJson, writeOut } from "../output/output.ts"
import { telemetryLayer } from "../telemetry/telemetry.ts"
import { telemetryVariables } from "../telemetry/variables.ts"
import { type SweepPart, PartOfSweep, sweepProgress } from "../../sweep/part.ts"
import { loadTraining } from "../userCode/loadTraining.ts"
import { isConfig } from "../userCode/yamlFile.ts"
import { printingAddresses } from "../bucket/addressed.ts"
import { type RunBucket, openBucket } from "../bucket/runInBucket.ts"
import { resumedCluster } from "../worker/cluster.ts"
import { placementLayer } from "../worker/placement.ts"
import { digestIn, readFinished, readMetrics, runToEnd } from "./finished.ts"
import { fileWords } from "../presets/packaged.ts"
import { withFindRun } from "./finding.ts"
import type { RunFlags } from "./flags.ts"
import { overridesOf } from "./overrides.ts"
import { refuseOtherFile, runToResume } from "./runToResume.ts"
import { stepSignalled } from "./stepSignal.ts"

/** Runs one training. With `--results-dir s3://…`, the run works in a temporary folder in the bucket's stead. */
export const trainOnce = Effect.fnUntraced(function* (typed: RunFlags) {
  if (!isBucket(typed.resultsDir)) return yield* withFindRun(typed)(train(typed, undefined))
  yield* Effect.scoped(
    Effect.flatMap(openBucket(typed), (bucket) =>
      printingAddresses(
        bucket.input.resultsDir,
        bucket.root,
        withFindRun(bucket.input)(train(bucket.input, bucket, typed)),
      ),
    ),
  )
})

/**
 * Makes the store of the run. The store depends on the results folder, and on whether the run is resumed, is part of a sweep,
 * or is saved in a bucket.
 */
const storeOf = (
  input: RunFlags,
  {
    fs,
    part,
    resume,
    bucket,
  }: {
    readonly fs: FileSystem.FileSystem
    readonly part: SweepPart | undefined
    readonly resume: string | undefined
    readonly bucket: RunBucket | undefined
  },
  onOpen: (directory: string) => Effect.Effect<void>,
) => {
  const time = dateOf(part?.time ?? "")
  return runStore({
    resultsDir: input.resultsDir,
    program: isConfig(input.file) ? undefined : input.file,
    // The file may name its own results folder, unless the user typed --results-dir or a sweep chose the folder.
    ownPlaces: part === undefined && input.resultsDir === defaultResultsDir,
    ...(time === undefined || part === undefined ? {} : { time, commit: part.commit }),
    onOpen: Effect.fnUntraced(function* (directory) {
      yield* onOpen(directory)
      if (part === undefined) return
      yield* Effect.ignore(fs.writeFileString(join(directory, Layout.sweepCommand), `${part.command}\n`))
    }),
    ...(resume === undefined ? {} : { resume }),
    ...(bucket === undefined ? {} : { wrap: bucket.wrap, indexed: false }),
  })
}

const train = Effect.fnUntraced(function* (input: RunFlags, bucket: RunBucket | undefined, typed = input) {
  const shown = (directory: string): string => bucket?.addressOf(directory) ?? directory
  const isStepWanted = yield* stepSignalled
  const name = nameOf(input)
  if (Option.isSome(input.cluster)) watchModules()
  const training = yield* loadTraining(input.file)
  const resume = yield* runToResume(input, training)
  // The sweep that started this process; undefined if the user started it.
  const part = yield* PartOfSweep
  if (resume !== undefined && part === undefined) {
    yield* refuseOtherFile(input, training, resume)
    if (!input.quiet && !input.json) yield* printRun(typed.resume, shown(resume))
  }
  if (resume !== undefined) yield* bucket?.complete(resume) ?? Effect.void
  const overrides = yield* overridesOf(input, resume)
  const digestBefore = resume === undefined ? undefined : yield* digestIn(resume)

  const options = yield* sessionOptions(input)
  const threads = threadsOfEach(options.threads)

  const fs = yield* FileSystem.FileSystem
  const alerting = yield* alertSinks(input.alert, shown)
  const layers = (onOpen: (directory: string) => Effect.Effect<void>) =>
    Layer.mergeAll(
      backend(input.backend, options),
      envPool,
      platform,
      placementLayer({ backend: input.backend, cluster: input.cluster, server: input.server, threads }),
      trainerThreads({ backend: input.backend, threads }),
      recorder(
        ...(input.csv ? [csv] : []),
        ...(telemetryVariables() === undefined ? [] : [telemetry]),
        ...(input.quiet ? [] : [terminalProgress]),
        ...(part === undefined ? [] : [sweepProgress]),
        ...alerting,
      ),
      storeOf(input, { fs, part, resume, bucket }, onOpen),
    )
  const runOptions: RunOptions = {
    overrides,
    source: input.file,
    name,
    population: part?.population ?? {},
    isStepWanted,
    backend: input.backend,
    ...(Option.isNone(input.cluster) || isConfig(input.file) ? {} : { program: asSentProgram(input.file) }),
  }
  const run = Effect.provideService(training, RunOptions, runOptions)
  yield* runToEnd((onOpen) => Effect.provide(run, Layer.merge(layers(onOpen), telemetryLayer)), {
    read: (directory) => Effect.map(readFinished(directory), ({ result }) => result),
    finished: Effect.fnUntraced(function* (result) {
      const evaluation = yield* evaluationIn(result.runDir)
      if (input.json) yield* writeJson({ ...result, runDir: shown(result.runDir) })
      else if (evaluation !== undefined && !input.quiet) {
        yield* writeOut(yield* evaluationText({ ...evaluation, runDir: shown(result.runDir) }))
      }
      if (evaluation !== undefined) return yield* refuseFailures(evaluation)
      if (input.json || input.quiet) return
      if (resume !== undefined && result.digest === digestBefore) {
        yield* writeOut(`this run is finished, and nothing has changed; ${yield* howToTrainFurther(resume)}\n`)
      }
      const imitated = yield* imitatedSteps(result.runDir)
      yield* writeOut(summary({ ...result, runDir: shown(result.runDir) }, imitated))
      yield* writeOut(yield* learnedTexts(result.runDir, shown(result.runDir)))
    }),
    resumeCommand: (directory, remedy) => resumeCommand(typed, shown(directory), remedy),
    advises: part === undefined && resume === undefined,
  })
})

/** Reads the config of a run; undefined if it cannot be read. It is read as JSON, in a fraction of the time that YAML takes. */
const configIn = (run: string) =>
  readRunText(join(run, Layout.configJson), mostBytes.text).pipe(
    Effect.map(parsedJson),
    Effect.orElseSucceed(() => undefined),
  )

const howToTrainFurther = Effect.fnUntraced(function* (run: string) {
  return `train it further with a larger ${lengthFlag(yield* configIn(run))}`
})

/** Returns the flag with which the user chooses the length of a training with this config. */
const lengthFlag = (config: unknown): string => {
  const kind = kindOf(config)
  if (kind === "agents") return "--set runtime.max_envs_to_visit=N"
  if (kind === "prompts") return "--set learner.max_metric_calls=N"
  if (kind !== "multirun" || !isPlain(config) || !isPlain(config["runs"])) return "--total-steps"
  return `--set runs.${Object.keys(config["runs"]).at(0) ?? "NAME"}.max_steps=N`
}

/**
 * Returns the command that resumes a run. It repeats `--backend`, because another backend may compute slightly different
 * numbers.
 */
const resumeCommand = (input: RunFlags, directory: string, remedy?: string): string => {
  const { file, name, config, backend, threads, resultsDir, cluster } = input
  // Without these settings, `refuseOtherFile` would think that the file describes another training.
  const nameSettings = input.set.filter((setting) => /^(env|algorithm)(\.name)?=/.test(setting))
  const words = flagWords({
    resume: directory,
    name,
    config,
    set: [...nameSettings, ...(remedy === undefined ? [] : [`agent.lm_config.${remedy}`])],
    backend: backend === "auto" ? undefined : backend,
    threads,
    csv: input.csv,
    server: input.server,
    "results-dir": resultsDir === defaultResultsDir ? undefined : resultsDir,
    cluster: resumedCluster(cluster),
  })
  return `npx effect run ${quoted([...fileWords(file), ...words])}`
}

/** Reads the result of a program that ran an evaluation; undefined if the program ran a training. */
const evaluationIn = Effect.fnUntraced(function* (directory: string) {
  if (kindOf(yield* configIn(directory)) !== "evaluation") return undefined
  const { EvaluationResult } = yield* Effect.promise(() => import("../../../agents/evaluate/result.ts"))
  return yield* readMetrics(directory, EvaluationResult)
})

/** Returns how much better the texts of a run that learns prompts are, and how to read them; an empty text for other runs. */
const learnedTexts = Effect.fnUntraced(function* (directory: string, shown: string) {
  if (kindOf(yield* configIn(directory)) !== "prompts") return ""
  const { comparisonTableIn } = yield* Effect.promise(() => import("../../promptsComparisons.ts"))
  return `\n${yield* comparisonTableIn(directory)}\nshow the texts: npx effect runs texts ${quoted([shown])}\n`
})

/**
 * Returns the number of steps in which the runs of a multi-run trainer imitated right answers; undefined for other runs. The
 * samples of such steps do not come from played episodes.
 */
const imitatedSteps = Effect.fnUntraced(function* (directory: string) {
  if (kindOf(yield* configIn(directory)) !== "multirun") return undefined
  const { runsIn } = yield* Effect.promise(() => import("../../../trainer/trainerFolder.ts"))
  const counts = yield* Effect.forEach(yield* runsIn(directory), (id) =>
    Effect.gen(function* () {
      const folder = join(directory, id)
      const metrics = yield* Effect.option(readMetrics(folder, Schema.Struct({ steps: Schema.Int })))
      const run = dataAt(yield* configIn(folder), ["runs", Layout.childNameOf(id), "supervised", "steps"])
      return Option.isSome(metrics) && typeof run === "number" ? Math.min(run, metrics.value.steps) : 0
    }),
  )
  return counts.reduce((sum, count) => sum + count, 0)
})

/**
 * Formats the result as lines for people. `imitated` is the number of steps that imitated right answers, in a trainer of
 * language models.
 */
const summary = (result: RunResult, imitated: number | undefined): string => {
  const seconds = `${result.wallSeconds.toFixed(1)} s (${roundedSpeed(result.stepsPerSecond)} steps/s)`
  const work =
    imitated === undefined
      ? `${result.steps} steps, ${result.episodes} episodes`
      : `${result.steps} steps (${imitated} of imitation), ${result.episodes} samples`
  return [
    `${work} in ${seconds}`,
    scoreOf(result, imitated !== undefined),
    `digest ${shownDigest(result.digest)}`,
    result.runDir,
    "",
  ].join("\n")
}

const scoreOf = ({ validation, meanReturn }: RunResult, isTrainer: boolean): string => {
  if (validation === null) {
    if (meanReturn !== null) return `mean return ${shownScore(meanReturn)} over the last episodes`
    // A trainer of language models has no return of its own; only its runs have returns.
    return isTrainer ? "no validation" : "no episode ended"
  }
  const { meanReturn: mean, stdReturn, episodes, agents = [] } = validation
  // The agents of a game that share their rewards all have the same score.
  const differ = agents.some((one) => shownScore(one.meanReturn) !== shownScore(mean))
  const scores = agents.map(({ agent, meanReturn }) => `${agent} ${shownScore(meanReturn)}`)
  const ofAgents = differ ? ` (${scores.join(", ")})` : ""
  return `validation ${shownSpread(mean, stdReturn)} over ${episodes} episodes${ofAgents}`
}
