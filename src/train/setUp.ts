import { Clock, Effect, Scope } from "effect"
import type { Learner, LearnerError, SetupError } from "../learner/Algorithm.ts"
import type { Backend } from "../backend/Backend.ts"
import { ConfigError, display, isPlain, snakeCase } from "../config/Config.ts"
import { tidyFolder } from "../config/files.ts"
import { oneLine } from "../config/text.ts"
import type { EnvError } from "../env/EnvError.ts"
import { sizeOf } from "../env/Space.ts"
import { GraphError } from "../graph/GraphError.ts"
import { type RunFiles, RunStore } from "../run/store/RunStore.ts"
import type { RunStoreError } from "../run/store/RunStoreError.ts"
import { savedConfig } from "./checkpointing.ts"
import { type TrainingEnvs, trainingEnvs, validationBatches } from "./envs.ts"
import type { Plan } from "./plan.ts"
import { RunOptions } from "./RunOptions.ts"
import { evaluationOf, type RunState } from "./RunState.ts"
import { makeStepFolder, type WriteStepFolder } from "./stepFolder.ts"
import { makeValidator, type Validator } from "./validation/Validator.ts"
import * as Layout from "../run/Layout.ts"

/** Everything that a training or an evaluation works with, compiled and opened. */
export interface Ready {
  readonly planned: Plan
  readonly envs: TrainingEnvs
  readonly learner: Learner
  readonly validator: Validator | undefined
  readonly stepFolder: WriteStepFolder | undefined
  /** The same with an evaluation, whatever the settings say of either; it is compiled when it is first wanted. */
  readonly wantedStep: WriteWantedStep | undefined
  readonly run: RunFiles
  readonly startedAtMillis: number
}

export type WriteWantedStep = (
  run: RunFiles,
  state: RunState,
) => Effect.Effect<string, SetupError | LearnerError | RunStoreError>

export const setUp = Effect.fnUntraced(function* (
  planned: Plan,
): Effect.fn.Return<Ready, SetupError | RunStoreError | EnvError, Backend | RunStore | Scope.Scope> {
  const { settings, env, algorithm } = planned
  const { population, onPlanned } = yield* RunOptions
  const identity = {
    name: settings.name,
    population: { environment: env.id, algorithm: algorithm.name, ...population },
    seed: settings.seed,
  }
  if (onPlanned !== undefined) yield* onPlanned(identity, planned.effective)
  const startedAtMillis = yield* Clock.currentTimeMillis
  const gamma = typeof algorithm.config.gamma === "number" ? algorithm.config.gamma : 0.99
  yield* checkRollout(planned)
  const envs = yield* trainingEnvs(env, settings, gamma).pipe(withinMemory(planned))
  const { observationSpace, actionSpace } = env
  const learner = yield* algorithm.setup({ ...settings, observationSpace, actionSpace }).pipe(
    Effect.catchTag("ConfigError", (error) => Effect.fail(ConfigError.at(planned.from, error.key, error.problem))),
    withinMemory(planned),
  )
  const problem = misfit(planned, learner)
  if (problem !== undefined) return yield* problem
  const { policy } = learner
  const playing =
    policy === undefined
      ? undefined
      : {
          validator: Effect.flatMap(validationBatches(planned.validationEnvs, settings, envs), (batches) =>
            makeValidator(batches, policy, settings.validation),
          ),
          stepFolder: makeStepFolder({ plan: planned, learner, envs }, policy),
        }
  const validator = settings.validation.everySteps > 0 ? yield* playing?.validator ?? Effect.undefined : undefined
  const stepFolder = settings.render.everySteps > 0 ? yield* playing?.stepFolder ?? Effect.undefined : undefined
  const scope = yield* Effect.scope
  const onDemand =
    playing === undefined
      ? undefined
      : yield* Effect.cached(
          Effect.all({
            validator: validator === undefined ? playing.validator : Effect.succeed(validator),
            stepFolder: stepFolder === undefined ? playing.stepFolder : Effect.succeed(stepFolder),
          }).pipe(Effect.provideService(Scope.Scope, scope)),
        )
  const wantedStep: WriteWantedStep | undefined =
    onDemand === undefined
      ? undefined
      : Effect.fnUntraced(function* (run, state) {
          const made = yield* onDemand
          const evaluation =
            state.evaluationHere ?? evaluationOf(state.step, yield* made.validator.validate(settings.seed, state.step))
          return yield* made.stepFolder(run, state, evaluation)
        })

  // Only what can be set up leaves a folder behind.
  const opened = yield* (yield* RunStore).open(identity)
  const moved = yield* movedCheckpoints(planned, opened)
  if (moved !== undefined) return yield* moved
  const run = opened.placed(Layout.places({ checkpoints: settings.checkpoint.dir, logs: settings.logDir }))
  return { planned, envs, learner, validator, stepFolder, wantedStep, run, startedAtMillis }
})

/** Two gibibytes of observations. */
const mostNumbers = 2 ** 29

/** A rollout that is larger than memory would not be refused by the system, but end the process. */
const checkRollout = ({ settings, env, algorithm, from }: Plan): Effect.Effect<void, ConfigError> => {
  const { nsteps } = algorithm.config
  const size = sizeOf(env.observationSpace)
  if (typeof nsteps !== "number" || settings.numEnvs * nsteps * size <= mostNumbers) return Effect.void
  const problem = `${nsteps} steps of ${settings.numEnvs} envs, each with ${size} numbers to observe, are more than ${mostNumbers} numbers; make nsteps or num_envs smaller`
  return Effect.fail(ConfigError.at(from, "algorithm.nsteps", problem))
}

/** Arrays are made of the settings' sizes: where one is too large for the machine, the settings are to blame. */
const withinMemory =
  ({ settings, algorithm, from }: Plan) =>
  <A, E, R>(setup: Effect.Effect<A, E, R>): Effect.Effect<A, E | ConfigError | GraphError, R> =>
    Effect.catchDefect(setup, (defect): Effect.Effect<never, ConfigError | GraphError> => {
      if (defect instanceof GraphError) return Effect.fail(defect)
      if (!(defect instanceof RangeError)) return Effect.die(defect)
      const sizes = ["nsteps", "bufferSize", "batchSize", "hidden"].flatMap((key) =>
        algorithm.config[key] === undefined ? [] : [`algorithm.${snakeCase(key)} ${display(algorithm.config[key])}`],
      )
      const message = `needs more memory than there is (${oneLine(defect.message)}); make some of these smaller: ${[`num_envs ${settings.numEnvs}`, ...sizes].join(", ")}`
      return Effect.fail(ConfigError.at({ source: from.source }, "", message))
    })

/** A run that goes on must find its checkpoints: it would start over, and its scores be gone. */
const movedCheckpoints = Effect.fnUntraced(function* (
  { settings, from }: Plan,
  run: RunFiles,
): Effect.fn.Return<ConfigError | undefined, RunStoreError> {
  if (!run.resumed || !(yield* run.exists(Layout.config))) return undefined
  const { checkpoint } = yield* savedConfig(run)
  const { dir = Layout.checkpoints } = isPlain(checkpoint) ? checkpoint : {}
  if (typeof dir === "string" && tidyFolder(dir) === settings.checkpoint.dir) return undefined
  const problem = `the run keeps its checkpoints in ${String(dir)}, not in ${settings.checkpoint.dir}`
  return ConfigError.at(from, "checkpoint.dir", problem)
})

/** What the settings ask of a learner that it can't do. */
const misfit = ({ settings, from }: Plan, { policy, plays }: Learner): ConfigError | undefined => {
  const name = String(settings.algorithm.name)
  const wrong = (key: string, problem: string): ConfigError => ConfigError.at(from, key, problem)
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
