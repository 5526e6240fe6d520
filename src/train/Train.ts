import { Clock, Effect, type Scope } from "effect"
import { stringify } from "yaml"
import type { Learner, SetupError } from "../algorithm/Algorithm.ts"
import type { Backend } from "../backend/Backend.ts"
import { blamed, ConfigError, isPlain, toCamelCase, toSnakeCase } from "../config/Config.ts"
import { encodeReturnFile } from "../experiment/evaluation.ts"
import { RunStore } from "../experiment/RunStore.ts"
import { Recorder } from "../record/Recorder.ts"
import { resume, saveCheckpoint, startOver } from "./checkpointing.ts"
import { attempt } from "../algorithm/drive.ts"
import { digestOf } from "./digest.ts"
import { trainingEnvs, validationBatches } from "./envs.ts"
import type { RunResult } from "./RunResult.ts"
import { type Evaluation, RunState } from "./RunState.ts"
import { configOf, type Plan, plan } from "./plan.ts"
import type { TrainInput } from "./Settings.ts"
import { makeStepFolder } from "./stepFolder.ts"
import { type LoopError, supervise, type Training } from "./Trainer.ts"
import { makeValidator, spreadOf } from "./validation/Validator.ts"

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

/** The same from plain data, as a run's `config.yaml` holds it: env and algorithm by name. */
export const fromConfig = (config: unknown): Run => {
  const tree = toCamelCase(config)
  return plan(isPlain(tree) ? tree : {}, {}).pipe(Effect.flatMap(execute), Effect.scoped)
}

const execute = Effect.fnUntraced(function* (
  planned: Plan,
): Effect.fn.Return<RunResult, TrainError, Backend | RunStore | Recorder | Scope.Scope> {
  const { settings, env, algorithm, effective } = planned
  const startedAtMillis = yield* Clock.currentTimeMillis
  const gamma = typeof algorithm.config.gamma === "number" ? algorithm.config.gamma : 0.99
  const envs = yield* trainingEnvs(env, settings, gamma)
  const { observationSpace, actionSpace } = env
  const learner = yield* algorithm
    .setup({ ...settings, observationSpace, actionSpace })
    .pipe(Effect.catchTag("ConfigError", (error) => Effect.fail(blamed(error, planned.from))))
  const problem = misfit(planned, learner)
  if (problem !== undefined) return yield* blamed(problem, planned.from)
  const { policy } = learner
  const validator =
    settings.validation.everySteps > 0 && policy !== undefined
      ? yield* makeValidator(
          yield* validationBatches(planned.validationEnvs, settings, envs),
          policy,
          settings.validation,
        )
      : undefined
  const stepFolder =
    settings.render.everySteps > 0 && policy !== undefined
      ? yield* makeStepFolder({ plan: planned, learner, envs }, policy)
      : undefined

  // Only what can be set up leaves a folder behind.
  const opened = yield* (yield* RunStore).open({
    name: settings.name,
    population: { environment: env.id, algorithm: algorithm.name },
    seed: settings.seed,
  })
  const { logDir } = settings
  const logs = Object.fromEntries(["run.log", "logs.tfevents"].map((file) => [file, join(logDir, file)]))
  const run = opened.placed({ checkpoints: settings.checkpoint.dir, ...logs })
  const startsOver = run.resumed && (yield* startOver(run))
  const goesOn = run.resumed && !startsOver
  const resumed = goesOn ? yield* resume(planned, run, learner, envs) : undefined
  const state = resumed?.state ?? new RunState()
  if (resumed === undefined) {
    yield* attempt(() => {
      envs.reset(settings.seed, "env")
      // A state that can't be saved is better known now than when hours of training are to be.
      envs.snapshot()
    })
  }
  if (state.step < settings.totalSteps) for (const stale of ["return.json", "metrics.json"]) yield* run.remove(stale)
  yield* run.write("config.yaml", bytesOf(stringify(toSnakeCase(effective))))
  yield* run.write("config.json", bytesOf(`${JSON.stringify(toSnakeCase(effective), null, 2)}\n`))
  yield* run.write("description.txt", bytesOf(`${settings.description ?? descriptionOf(planned)}\n`))

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
  }
  const recording = yield* (yield* Recorder).start(run, about)
  const notes = [
    ...planned.notes,
    ...(startsOver ? ["it had not saved anything yet, so it starts over"] : []),
    ...(goesOn && state.step >= settings.totalSteps
      ? [`it is finished; with more --total-steps than ${settings.totalSteps} it would go on`]
      : []),
  ]
  yield* recording.emit([
    about,
    ...notes.map((message) => ({ _tag: "Note" as const, message })),
    ...(resumed?.warnings ?? []).map((message) => ({ _tag: "Warning" as const, message })),
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
    state,
    recording,
    startedAtMillis,
    startedAtStep: state.step,
    saveCheckpoint: saveCheckpoint({ plan: planned, run, learner, envs, state, wallSeconds }),
  }
  yield* supervise(training)

  const last = state.evaluations.at(-1)
  const seconds = yield* secondsHere
  const result: RunResult = {
    runDir: run.directory,
    steps: state.step,
    episodes: state.episodes,
    meanScore: state.meanScore,
    meanReturn: state.meanReturn,
    validation: last === undefined ? null : summaryOf(last),
    failedValidations: state.failedValidations,
    digest: yield* digestOf(yield* learner.weights, state.scoreHash),
    wallSeconds: yield* wallSeconds,
    stepsPerSecond: seconds > 0 ? (state.step - training.startedAtStep) / seconds : 0,
  }
  yield* run.write("metrics.json", bytesOf(`${JSON.stringify(toSnakeCase(result), null, 2)}\n`))
  yield* recording.flush
  // Last: its existence says that the run is finished.
  yield* run.write("return.json", encodeReturnFile(state.evaluations))
  return result
})

/** What the settings ask of a learner that it can't do. */
const misfit = ({ settings }: Plan, { policy, plays }: Learner): ConfigError | undefined => {
  const name = String(settings.algorithm.name)
  const wrong = (key: string, text: string): ConfigError =>
    new ConfigError({ source: name, key, message: `${key}: ${text}` })
  if (settings.validation.everySteps > 0 && policy === undefined) {
    return wrong(
      "validation.every_steps",
      `algorithm "${name}" can't be validated: it lacks the hook "policy"; 0 turns validation off`,
    )
  }
  const normalized = (["observations", "rewards"] as const).find((key) => settings.normalize[key])
  if (plays !== "nothing" || normalized === undefined) return undefined
  return wrong(`normalize.${normalized}`, `algorithm "${name}" plays no env, so there is nothing to normalise by`)
}

const descriptionOf = ({ settings, algorithm, env }: Plan): string =>
  `${algorithm.name} on ${env.id}, ${settings.totalSteps} steps, seed ${settings.seed}`

const join = (folder: string, file: string): string => (folder === "." ? file : `${folder}/${file}`)

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

const summaryOf = ({ step, returns }: Evaluation): NonNullable<RunResult["validation"]> => {
  const { meanReturn, stdReturn } = spreadOf(returns)
  return { step, episodes: returns.length, meanReturn, stdReturn }
}
