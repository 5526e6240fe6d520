/**
 * Implements `effect eval RUN`: plays validation episodes from a checkpoint and prints their returns; `--render` saves an
 * episode, and `--video` also a video.
 */
import { join, resolve } from "node:path"
import { Effect, Layer, Option } from "effect"
import { Dispatcher } from "../../../spread/cluster/Dispatcher.ts"
import { watchModules } from "../../../spread/cluster/sent/loadedModules-node.ts"
import { asSentProgram } from "../../../spread/cluster/sent/sentFiles-node.ts"
import type { Override } from "../../../base/config/Config.ts"
import { exists, namesIn } from "../../../base/files/files.ts"
import { backend, envPool, platform, runStore } from "../../../node.ts"
import type { ValidationOutcome } from "../../../run/evaluation.ts"
import * as Layout from "../../../run/Layout.ts"
import { Recorder } from "../../../run/record/Recorder.ts"
import { countedIn, scoresBy } from "../../../run/record/scalars.ts"
import type { RunResult } from "../../../run/RunResult.ts"
import { kindOf } from "../../../run/RunSpec.ts"
import { validate } from "../../../rl/train/validate.ts"
import { meanOf } from "../../../base/statistics/resampling.ts"
import { RunOptions } from "../../../run/RunOptions.ts"
import { dataAt } from "../../../run/find/Value.ts"
import { MetricAlerts } from "../alerts/MetricAlerts.ts"
import { requireConfig } from "../findRun.ts"
import { usageError, writeJson, writeOut } from "../output/output.ts"
import { parseSetting } from "../run/overrides.ts"
import { loadTrainingOf } from "../userCode/loadTraining.ts"
import { isConfig, readYaml, yamlOverrides } from "../userCode/yamlFile.ts"
import { dispatcherLayer } from "../worker/cluster.ts"
import { refuseFailures } from "./failures.ts"
import type { EvalFlags } from "./flags.ts"

export const evaluateRun = Effect.fnUntraced(function* (input: EvalFlags, run: string) {
  const evaluating = Effect.provide(evaluateHere(input, run), dispatcherLayer(input.cluster))
  if (input.alert.length === 0) return yield* evaluating
  const { alerting } = yield* Effect.promise(() => import("../alerts/alerts.ts"))
  const name = dataAt(yield* readYaml(yield* requireConfig(run)), ["name"])
  const about = { run, name: typeof name === "string" ? name : run }
  return yield* alerting({ flags: input.alert, about, what: "the evaluation of a checkpoint" }, evaluating)
})

const evaluateHere = Effect.fnUntraced(function* (input: EvalFlags, run: string) {
  const config = yield* requireConfig(run)
  if (Option.isSome(input.cluster)) watchModules()
  const training = yield* loadTrainingOf(run, input.file)
  const isAgent = kindOf(yield* readYaml(config)) === "agents"
  const writesStepFolder = input.render || Option.isSome(input.video)
  if (isAgent && writesStepFolder) {
    const flag = input.render ? "--render" : "--video"
    return yield* usageError(
      `${flag} only works with reinforcement learning; effect ui ${run} shows the episodes of this run`,
    )
  }
  const checkpoint = yield* checkpointOf(run, input.step)
  const episodes = Option.getOrUndefined(input.episodes)
  const required: ReadonlyArray<Override> = isAgent
    ? episodesAt("validation_dataset.max_samples", episodes)
    : [
        // Both settings are needed: the training may have had no validation, and the folder in `steps/` is written only for
        // --render and --video.
        { path: "validation.everySteps", value: 1, source: "effect eval" },
        { path: "render.everySteps", value: 0, source: "effect eval" },
        // Callbacks run only in a training, so their program is not needed.
        { path: "callbacks", value: [], source: "effect eval" },
        ...Option.toArray(input.video).map((video) => ({ path: "render.video", value: video, source: "--video" })),
        ...episodesAt("validation.episodes", episodes),
      ]
  const overrides = [
    ...(yield* yamlOverrides(config)),
    ...required,
    ...(yield* Effect.forEach(input.set, parseSetting)),
  ]
  const isSpread = (yield* Dispatcher).inFlight !== undefined
  const program = Option.filter(input.file, (file) => isSpread && !isConfig(file))
  const options: RunOptions = {
    overrides,
    source: config,
    name: "eval",
    backend: input.backend,
    ...(Option.isNone(program) ? {} : { program: asSentProgram(program.value) }),
  }
  const { result, outcome } = yield* validate(training, { checkpoint, writesStepFolder }).pipe(
    Effect.provideService(RunOptions, options),
    Effect.provide(
      Layer.mergeAll(
        backend(input.backend),
        envPool,
        platform,
        Recorder.layerSilent,
        runStore({ resultsDir: run, resume: run, readOnly: true, indexed: writesStepFolder }),
      ),
    ),
  )
  if (outcome === undefined) return yield* usageError(`${run}: no episode was played`)
  if (outcome.episodes.length > 0) {
    const evaluation = evaluationOf(result, outcome)
    const values = { "validation/score": outcome.meanReturn }
    yield* (yield* MetricAlerts)([{ facts: {}, step: result.steps, values }])
    yield* input.json ? writeJson(evaluation) : writeOut(summary(evaluation, isAgent))
    if (!input.json && writesStepFolder) yield* writeOut(`${yield* savedIn(run, evaluation.step)}\n`)
  }
  yield* refuseFailures({ ...outcome, episodes: outcome.episodes.length + (outcome.failed ?? 0) }, input.maxFailures)
})

/** Returns the path of the video in the folder of a step, or else of that folder. */
const savedIn = Effect.fnUntraced(function* (run: string, step: number) {
  const folder = join(run, Layout.stepFolder(step))
  const videos = (yield* namesIn(folder)).filter((name) => name.endsWith(".gif") || name.endsWith(".mp4"))
  return videos.length === 1 ? join(folder, videos[0]) : folder
})

const episodesAt = (path: string, value: number | undefined): ReadonlyArray<Override> =>
  value === undefined ? [] : [{ path, value, source: "--episodes" }]

/**
 * Makes the object that `--json` prints. `step` is the checkpoint's step. All other numbers come from the episodes that
 * this evaluation played, not from the training.
 */
const evaluationOf = (
  { runDir, steps, wallSeconds, stepsPerSecond }: RunResult,
  { episodes: played, meanReturn, stdReturn, failed = 0, failures = [] }: ValidationOutcome,
) => {
  const episodes = countedIn(played)
  const returns = episodes.map((episode) => episode.return)
  const agents = scoresBy({ episodes: played }, "agent")
  return {
    runDir,
    step: steps,
    episodes: episodes.length,
    meanReturn,
    stdReturn,
    // The mean return of each agent of a game, by its name.
    ...(agents.length === 0 ? {} : { agents: Object.fromEntries(agents) }),
    minReturn: returns.reduce((least, value) => Math.min(least, value), Infinity),
    maxReturn: returns.reduce((most, value) => Math.max(most, value), -Infinity),
    meanLength: meanOf(episodes.map(({ length }) => length)),
    terminated: episodes.filter(({ terminated }) => terminated).length,
    truncated: episodes.filter(({ truncated }) => truncated).length,
    wallSeconds,
    stepsPerSecond,
    ...(failed === 0 ? {} : { failed, failures }),
  }
}

const summary = (evaluation: ReturnType<typeof evaluationOf>, isAgent: boolean): string => {
  const { meanReturn, stdReturn, agents = {}, episodes, step } = evaluation
  const player = isAgent ? `the agent after ${step} steps` : `the policy of step ${step}`
  const scores = Object.entries(agents).map(([agent, score]) => `${agent} ${score.toFixed(2)}`)
  const ofAgents = scores.length === 0 ? "" : ` (${scores.join(", ")})`
  return `${meanReturn.toFixed(2)} ± ${stdReturn.toFixed(2)} over ${episodes} episodes${ofAgents}, by ${player}\n`
}

/**
 * Returns the name of the checkpoint that `--step` selects; `latest` without that flag. Checkpoints are numbered by env
 * steps, or by episodes for agents that ask a language model.
 */
export const checkpointOf = Effect.fnUntraced(function* (run: string, step: Option.Option<number>) {
  if (Option.isNone(step)) return Layout.latest
  const config = yield* readYaml(join(run, Layout.config))
  const unit = kindOf(config) === "agents" ? "ep" : "step"
  const name = Layout.checkpointName(unit, step.value)
  // The checkpoint folder in the config may be an absolute path.
  const folder = resolve(run, Layout.locate(Layout.placesIn(config), Layout.checkpoints))
  if (yield* exists(join(folder, name))) return name
  const steps = (yield* namesIn(folder)).flatMap((one) => {
    const checkpoint = Layout.checkpointOf(one)
    return checkpoint?.unit === unit ? checkpoint.count : []
  })
  const expected = steps.length === 0 ? "it has no checkpoints" : `expected one of ${steps.join(", ")}`
  return yield* usageError(`--step ${step.value}: ${run} has no checkpoint of this step; ${expected}`)
})
