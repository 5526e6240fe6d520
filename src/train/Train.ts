import { Clock, Effect, type Scope } from "effect"
import { stringify } from "yaml"
import type { LearnerError, SetupError } from "../learner/Algorithm.ts"
import { Backend } from "../backend/Backend.ts"
import { isPlain, toCamelCase, toSnakeCase } from "../config/Config.ts"
import { encodeReturnFile, spreadOf } from "../run/evaluation.ts"
import type { RunStore } from "../run/store/RunStore.ts"
import { withLogs } from "../run/record/logging.ts"
import { Recorder } from "../run/record/Recorder.ts"
import { restore, restoreLatest, saveCheckpoint, startOver } from "./checkpointing.ts"
import { cutBack, refuseChanged } from "./cutBack.ts"
import { digestOf } from "./digest.ts"
import { configOf, type Plan, plan } from "./plan.ts"
import { type Evaluate, RunOptions } from "./RunOptions.ts"
import { finishedResult } from "../run/finishedResult.ts"
import { RunResult } from "../run/RunResult.ts"
import { type Evaluation, RunState } from "./RunState.ts"
import { type Ready, setUp } from "./setUp.ts"
import type { TrainInput } from "./Settings.ts"
import { isOver, type LoopError, supervise, type Training } from "./Trainer.ts"
import * as Layout from "../run/Layout.ts"
import { attempt } from "../config/attempt.ts"
import { EnvError } from "../env/EnvError.ts"
import { utf8 } from "../config/utf8.ts"
import { prettyJson } from "../config/text.ts"

export type TrainError = SetupError | LoopError

/** A training that needs only Layers. */
export type Run = Effect.Effect<RunResult, TrainError, Backend | RunStore | Recorder>

/**
 * A training run as a value: give it Layers for the backend, the store and the recorder, and it runs.
 *
 * @example
 * ```ts
 * import { CartPole, Ppo, Train } from "effect-rl"
 *
 * export default Train.run({ env: CartPole.env, algorithm: Ppo.make(), totalSteps: 100_000 })
 * ```
 */
export const run = (input: TrainInput): Run => {
  const { config, values } = configOf(input)
  return plan(config, values).pipe(Effect.flatMap(execute), Effect.scoped)
}

/** The same from plain data, as a run's `config.yaml` holds it: env and algorithm by name; for messages, where each key stands. */
export const fromConfig = (config: unknown, { lines }: { readonly lines?: ReadonlyMap<string, string> } = {}): Run => {
  const tree = toCamelCase(config)
  return plan(isPlain(tree) ? tree : {}, {}, lines).pipe(Effect.flatMap(execute), Effect.scoped)
}

const execute = Effect.fnUntraced(function* (
  planned: Plan,
): Effect.fn.Return<RunResult, TrainError, Backend | RunStore | Recorder | Scope.Scope> {
  const ready = yield* setUp(planned)
  const { evaluate: asked } = yield* RunOptions
  return yield* asked === undefined ? train(ready) : evaluate(ready, asked)
})

const train = Effect.fnUntraced(function* (
  ready: Ready,
): Effect.fn.Return<RunResult, TrainError, Backend | RunStore | Recorder | Scope.Scope> {
  const { planned, envs, learner, validator, stepFolder, wantedStep, run, startedAtMillis } = ready
  const { settings, env, algorithm, effective } = planned
  const { isStepWanted = Effect.succeed(false) } = yield* RunOptions
  const startsOver = run.resumed && (yield* startOver(run))
  const goesOn = run.resumed && !startsOver
  const resumed = goesOn ? yield* restoreLatest({ plan: planned, run, learner, envs }) : undefined
  const state = resumed?.state ?? new RunState()
  if (resumed !== undefined && isOver({ settings, state })) {
    const finished = yield* finishedResult(run, RunResult)
    if (finished !== undefined) {
      yield* refuseChanged(run, resumed)
      return { ...finished, runDir: run.directory }
    }
  }
  const logWarnings = resumed === undefined ? [] : yield* cutBack(run, resumed)
  if (resumed === undefined) {
    yield* attempt(() => {
      envs.reset(settings.seed, "env")
      // A state that can't be saved is better known now than when hours of training are to be.
      envs.snapshot()
    }, EnvError)
  }
  for (const stale of Layout.results) yield* run.remove(stale)
  yield* run.write(Layout.config, utf8.encode(stringify(toSnakeCase(effective))))
  yield* run.write(Layout.configJson, utf8.encode(prettyJson(toSnakeCase(effective))))
  yield* run.write(Layout.description, utf8.encode(`${settings.description ?? descriptionOf(planned)}\n`))

  const about = {
    _tag: "RunStarted" as const,
    name: settings.name,
    env: env.id,
    algorithm: algorithm.name,
    devices: learner.devices,
    seed: settings.seed,
    totalSteps: settings.totalSteps,
    numEnvs: settings.numEnvs,
    resumedFromStep: resumed === undefined ? null : state.step,
    config: effective,
    logLevel: settings.logLevel,
  }
  const recording = yield* (yield* Recorder).start(run, about)
  const notes = [...planned.notes, ...(startsOver ? ["it had not saved anything yet, so it starts over"] : [])]
  const { warnings: ofBackend = Effect.succeed([]) } = yield* Backend
  const warnings = [...planned.warnings, ...(resumed?.warnings ?? []), ...logWarnings, ...(yield* ofBackend)]
  yield* recording.emit([
    about,
    ...notes.map((message) => ({ _tag: "Note" as const, message })),
    ...warnings.map((message) => ({ _tag: "Warning" as const, message })),
  ])

  const secondsHere = Effect.map(Clock.currentTimeMillis, (now) => (now - startedAtMillis) / 1000)
  const wallSeconds = Effect.map(secondsHere, (seconds) => state.earlierSeconds + seconds)
  const training: Training = {
    settings,
    learner,
    env,
    envs,
    validator,
    writeStepFolder: stepFolder?.(run, state),
    isStepWanted,
    writeWantedStep: wantedStep?.(run, state),
    state,
    recording,
    startedAtMillis,
    startedAtStep: state.step,
    saveCheckpoint: saveCheckpoint({ plan: planned, run, learner, envs, state, wallSeconds }),
  }
  const conclude = Effect.gen(function* () {
    const seconds = yield* secondsHere
    const result = yield* resultOf(ready, state, {
      wallSeconds: yield* wallSeconds,
      stepsPerSecond: seconds > 0 ? (state.step - training.startedAtStep) / seconds : 0,
    })
    yield* run.write(Layout.metrics, utf8.encode(prettyJson(toSnakeCase(result))))
    yield* recording.flush
    // Last: its existence says that the run is finished.
    yield* run.write(Layout.returns, encodeReturnFile(state.evaluations))
    return result
  })
  // A run that has done its work is finished, also when a signal comes now.
  return yield* Effect.uninterruptibleMask((restore) =>
    withLogs(recording, settings.logLevel, (recording) => supervise({ ...training, recording }, restore)).pipe(
      Effect.andThen(conclude),
    ),
  )
})

/** Validates what one of a run's checkpoints holds, as the training would have validated it there. */
const evaluate = Effect.fnUntraced(function* (
  ready: Ready,
  { checkpoint, keeps, onPlayed }: Evaluate,
): Effect.fn.Return<RunResult, TrainError> {
  const { planned, envs, learner, validator, stepFolder, run, startedAtMillis } = ready
  const { state } = yield* restore({ plan: planned, run, learner, envs }, checkpoint)
  const outcome = yield* validator?.validate(planned.settings.seed, state.step) ?? Effect.undefined
  const seconds = ((yield* Clock.currentTimeMillis) - startedAtMillis) / 1000
  if (outcome !== undefined) {
    state.addValidation(outcome)
    if (onPlayed !== undefined) yield* onPlayed(outcome)
  }
  if (keeps && stepFolder !== undefined) yield* stepFolder(run, state)
  const steps = outcome?.episodes.reduce((sum, { length }) => sum + length, 0) ?? 0
  return yield* resultOf(ready, state, { wallSeconds: seconds, stepsPerSecond: seconds > 0 ? steps / seconds : 0 })
})

const resultOf = Effect.fnUntraced(function* (
  { run, learner }: Ready,
  state: RunState,
  times: Pick<RunResult, "wallSeconds" | "stepsPerSecond">,
): Effect.fn.Return<RunResult, LearnerError> {
  const last = state.evaluations.at(-1)
  return {
    runDir: run.directory,
    steps: state.step,
    episodes: state.episodes,
    meanScore: state.meanScore,
    meanReturn: state.meanReturn,
    validation: last === undefined ? null : summaryOf(last),
    failedValidations: state.failedValidations,
    digest: yield* digestOf(yield* learner.weights, state.scoreHash),
    ...times,
  }
})

const descriptionOf = ({ settings, algorithm, env }: Plan): string =>
  `${algorithm.name} on ${env.id}, ${settings.totalSteps} steps, seed ${settings.seed}`

const summaryOf = ({ step, returns }: Evaluation): NonNullable<RunResult["validation"]> => {
  const { meanReturn, stdReturn } = spreadOf(returns)
  return { step, episodes: returns.length, meanReturn, stdReturn }
}
