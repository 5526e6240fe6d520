import { readdir } from "node:fs/promises"
import { existsSync } from "node:fs"
import { join, resolve } from "node:path"
import { Effect, Layer, Option } from "effect"
import type { Override } from "../../config/Config.ts"
import { backend, type BackendName, envPool, platform, runStore } from "../../node.ts"
import { Recorder } from "../../run/record/Recorder.ts"
import { RunOptions } from "../../train/RunOptions.ts"
import type { ValidationOutcome } from "../../run/evaluation.ts"
import type { RunResult } from "../../run/RunResult.ts"
import { kindOf } from "../../run/RunSpec.ts"
import { validate } from "../../run/ValidationRequest.ts"
import { loadTrainingOf, readYaml, yamlOverrides } from "../userCode/loadTraining.ts"
import { setting } from "../run/overrides.ts"
import { writeOut } from "../output/output.ts"
import { UsageError } from "../UsageError.ts"
import * as Layout from "../../run/Layout.ts"

export interface GivenRun {
  readonly run: string
  readonly file: Option.Option<string>
  readonly episodes: Option.Option<number>
  readonly step: Option.Option<number>
  readonly render: boolean
  readonly set: ReadonlyArray<string>
  readonly backend: BackendName
  readonly json: boolean
}

export type EvaluateRunError = UsageError | Effect.Error<Effect.Success<ReturnType<typeof loadTrainingOf>>>

/** Plays what a run has learnt. */
export const evaluateRun = Effect.fnUntraced(function* (given: GivenRun): Effect.fn.Return<void, EvaluateRunError> {
  const { run } = given
  const config = join(run, Layout.config)
  if (!existsSync(config)) return yield* new UsageError({ message: `${run}: it is not a run (it has no config.yaml)` })
  const training = yield* loadTrainingOf(run, given.file)
  const talks = kindOf(yield* readYaml(config)) === "agents"
  if (talks && given.render) {
    return yield* new UsageError({
      message: `--render only works with reinforcement learning; effect ui ${run} shows the episodes of this run`,
    })
  }
  const checkpoint = yield* checkpointOf(given)
  const [episodes] = Option.toArray(given.episodes)
  const always: ReadonlyArray<Override> = talks
    ? setTo("validation_dataset.max_samples", episodes)
    : [
        // That there is a validation at all, and one folder to keep.
        { path: "validation.everySteps", value: 1, source: "effect eval" },
        { path: "render.everySteps", value: given.render ? 1 : 0, source: "effect eval" },
        ...setTo("validation.episodes", episodes),
      ]
  const overrides = [...(yield* yamlOverrides(config)), ...always, ...(yield* Effect.forEach(given.set, setting))]
  const { result, outcome: played } = yield* validate(training, { checkpoint, writesStepFolder: given.render }).pipe(
    Effect.provideService(RunOptions, {
      overrides,
      source: config,
      name: "eval",
    }),
    Effect.provide(
      Layer.mergeAll(
        backend(given.backend),
        envPool,
        platform,
        Recorder.layerSilent,
        runStore({ resultsDir: run, resume: run, readOnly: true, indexed: given.render }),
      ),
    ),
  )
  if (played === undefined) return yield* new UsageError({ message: `${run}: no episode was played` })
  if (played.episodes.length === 0) return yield* new UsageError({ message: `${run}: all episodes failed` })
  const found = evaluationOf(result, played)
  yield* writeOut(given.json ? `${JSON.stringify(found)}\n` : summary(found, talks))
})

const setTo = (path: string, value: number | undefined): ReadonlyArray<Override> =>
  value === undefined ? [] : [{ path, value, source: "--episodes" }]

/** What `--json` prints: all of it is about the episodes that were played now, none of it about the training. */
const evaluationOf = (
  { runDir, steps, wallSeconds, stepsPerSecond }: RunResult,
  { episodes, meanReturn, stdReturn }: ValidationOutcome,
) => {
  const returns = episodes.map((episode) => episode.return)
  return {
    runDir,
    step: steps,
    episodes: episodes.length,
    meanReturn,
    stdReturn,
    minReturn: returns.reduce((least, value) => Math.min(least, value), Infinity),
    maxReturn: returns.reduce((most, value) => Math.max(most, value), -Infinity),
    meanLength: episodes.reduce((sum, { length }) => sum + length, 0) / episodes.length,
    terminated: episodes.filter(({ terminated }) => terminated).length,
    truncated: episodes.filter(({ truncated }) => truncated).length,
    wallSeconds,
    stepsPerSecond,
  }
}

const summary = (found: ReturnType<typeof evaluationOf>, talks: boolean): string => {
  const { meanReturn, stdReturn, episodes, step } = found
  const by = talks ? `the agent after ${step} steps` : `the policy of step ${step}`
  return `${meanReturn.toFixed(2)} ± ${stdReturn.toFixed(2)} over ${episodes} episodes, by ${by}\n`
}

/** Checkpoints are named by their steps, those of agents that talk by their episodes. */
export const checkpointOf = Effect.fnUntraced(function* ({
  run,
  step,
}: Pick<GivenRun, "run" | "step">): Effect.fn.Return<string, UsageError> {
  if (Option.isNone(step)) return "latest"
  const config = yield* readYaml(join(run, Layout.config))
  const unit = kindOf(config) === "agents" ? "ep" : "step"
  const name = Layout.checkpointName(unit, step.value)
  // The config can name an absolute folder.
  const folder = resolve(run, Layout.locate(Layout.placesIn(config), Layout.checkpoints))
  if (existsSync(join(folder, name))) return name
  const names = yield* Effect.promise(() => readdir(folder).catch(() => []))
  const steps = names.flatMap((one) => {
    const checkpoint = Layout.checkpointOf(one)
    return checkpoint?.unit === unit ? checkpoint.count : []
  })
  const known = steps.length === 0 ? "it has no checkpoints" : `expected one of ${steps.join(", ")}`
  return yield* new UsageError({ message: `--step ${step.value}: ${run} has no checkpoint of this step; ${known}` })
})
