/**
 * Makes trainings by reinforcement learning as Effects, and executes them. Programs and the `effect` command call it.
 */
import { Clock, Effect } from "effect"
import { Backend } from "../backend/Backend.ts"
import { attempt } from "../config/attempt.ts"
import { isPlain, toCamelCase } from "../config/Config.ts"
import { EnvError } from "../env/EnvError.ts"
import { constantsOf } from "../env/Normalise.ts"
import type { SetupError } from "../learner/Algorithm.ts"
import { CurrentRun } from "../run/CurrentRun.ts"
import { digestOf } from "../run/digest.ts"
import { summaryOf } from "../run/evaluation.ts"
import * as Layout from "../run/Layout.ts"
import type { Recorder } from "../run/record/Recorder.ts"
import * as OneRun from "../run/Run.ts"
import { RunResult } from "../run/RunResult.ts"
import type { RunSpec } from "../run/RunSpec.ts"
import type { RunFiles } from "../run/store/RunFiles.ts"
import type { RunStore } from "../run/store/RunStore.ts"
import type { RunIdentity } from "../run/identifier.ts"
import type { TrainedPolicy } from "../run/TrainedPolicy.ts"
import { ValidationRequest } from "../run/ValidationRequest.ts"
import {
  checkCheckpointFolder,
  checkTotalSteps,
  deviceWarnings,
  restore,
  saveCheckpoint,
  sharedSettings,
} from "./checkpointing.ts"
import { configOf, type Plan, plan } from "./plan.ts"
import { RunOptions } from "./RunOptions.ts"
import type { TrainInput } from "./Settings.ts"
import { setUp, type Training } from "./setUp.ts"
import { isOver, type LoopError, trainLoop } from "./Trainer.ts"
import { TrainingState } from "./TrainingState.ts"

export { validate } from "../run/ValidationRequest.ts"

export type TrainError = SetupError | LoopError

/** A training that has not started. It trains when it runs with Layers for the backend, the store and the recorder. */
export type Run = Effect.Effect<RunResult, TrainError, Backend | RunStore | Recorder>

/** Makes a training from settings, envs and an algorithm. The training runs when its Layers are provided. */
export const run = (input: TrainInput): Run => {
  const { config, values } = configOf(input)
  return plan(config, values).pipe(Effect.flatMap(execute), Effect.scoped)
}

/**
 * Makes a training from the content of a run's `config.yaml`, which has the env and the algorithm by name. `lines` maps
 * each key to the place where it was written, for error messages.
 */
export const fromConfig = (config: unknown, { lines }: { readonly lines?: ReadonlyMap<string, string> } = {}): Run => {
  const tree = toCamelCase(config)
  return plan(isPlain(tree) ? tree : {}, {}, lines).pipe(Effect.flatMap(execute), Effect.scoped)
}

/** Executes a plan: trains, or if `Train.validate` requests it, validates a checkpoint instead. */
const execute = Effect.fnUntraced(function* (plan: Plan) {
  const { settings, env, algorithm, effective } = plan
  const { population, onPlanned } = yield* RunOptions
  const identity = {
    name: settings.name,
    population: { environment: env.id, algorithm: algorithm.name, ...population },
    seed: settings.seed,
  }
  if (onPlanned !== undefined) yield* onPlanned(identity, effective)
  const startedAtMillis = yield* Clock.currentTimeMillis
  const training = yield* setUp(plan)
  const program = {
    spec: specOf(training, identity),
    startedAtMillis,
    places: Layout.places({ checkpoints: settings.checkpoint.dir, logs: settings.logDir }),
    open: (files: RunFiles, saved: OneRun.Saved<TrainingState> | undefined) => open(training, files, saved),
    loop: (state: TrainingState) => trainLoop(training, state),
    saving: {
      schema: TrainingState,
      settings: yield* sharedSettings(training),
      strategy: settings.checkpoint.strategy,
      check: (files: RunFiles) => checkCheckpointFolder(plan, files),
      save: (state: TrainingState) => saveCheckpoint(training, state),
      isSaved: (state: TrainingState) => isOver(settings, state) && state.lastCheckpointStep === state.step,
      // A failed iteration is incomplete, so the training could not be resumed from a checkpoint of it.
      savesOnFailure: false,
    },
    position: ({ step, episodes }: TrainingState) => ({ step, episodes }),
    result: { schema: RunResult, of: (state: TrainingState) => resultOf(training, state) },
  }
  const request = yield* ValidationRequest
  if (request === undefined) return yield* OneRun.execute(program)
  return yield* OneRun.inspect(program, request.checkpoint, (state) => validated(training, state, request))
})

/** Describes the run for its files and its first record. */
const specOf = ({ plan, learner }: Training, identity: RunIdentity): RunSpec => {
  const { settings, env, algorithm, effective } = plan
  const { totalSteps, seed, numEnvs, logLevel } = settings
  return {
    kind: "training",
    identity,
    config: effective,
    description: settings.description ?? `${algorithm.name} on ${env.id}, ${totalSteps} steps, seed ${seed}`,
    env: env.id,
    algorithm: algorithm.name,
    devices: learner.devices,
    total: totalSteps,
    numEnvs,
    logLevel,
  }
}

/** Resets the envs and makes a new state; for a resumed run, restores envs, learner and state from a checkpoint. */
const open = Effect.fnUntraced(function* (
  training: Training,
  files: RunFiles,
  saved: OneRun.Saved<TrainingState> | undefined,
) {
  const { plan, envs, learner } = training
  const { settings, notes } = plan
  const state = saved?.state ?? new TrainingState({})
  const devicesBefore = state.devices
  state.devices = learner.devices
  if (saved === undefined) {
    yield* attempt(() => {
      envs.reset(settings.seed, "env")
      // Take a snapshot now: an env that cannot save its state should fail here, not after hours of training.
      envs.snapshot()
    }, EnvError)
  } else {
    yield* restore(training, files, saved)
    yield* checkTotalSteps(plan, files, state)
  }
  const { warnings: backendWarnings = Effect.succeed([]) } = yield* Backend
  return {
    state,
    resumedFromStep: saved === undefined ? null : state.step,
    isOver: () => isOver(settings, state),
    notes,
    warnings: [
      ...plan.warnings,
      ...(saved === undefined ? [] : deviceWarnings(learner.devices, devicesBefore)),
      ...(yield* backendWarnings),
    ],
  }
})

/** Validates a restored checkpoint with the training's settings. Returns the run's metrics with this validation. */
const validated = Effect.fnUntraced(function* (
  training: Training,
  state: TrainingState,
  { writesStepFolder, exportsPolicy, onPlayed, onExported }: NonNullable<typeof ValidationRequest.Service>,
) {
  const { plan, validator, writeStepFolder } = training
  const outcome = yield* validator?.validate(plan.settings.seed, state.step) ?? Effect.undefined
  if (outcome !== undefined) {
    state.addValidation(outcome)
    onPlayed(outcome)
  }
  const result = yield* resultOf(training, state)
  if (writesStepFolder === true && writeStepFolder !== undefined) yield* writeStepFolder(state)
  if (exportsPolicy === true) {
    const policy = yield* trainedPolicy(training, state.step)
    if (policy !== undefined) onExported(policy)
  }
  const steps = outcome?.episodes.reduce((sum, { length }) => sum + length, 0) ?? 0
  const { wallSeconds } = result.metrics
  return { ...result.metrics, stepsPerSecond: wallSeconds > 0 ? steps / wallSeconds : 0 }
})

/** Returns the policy as a graph with its weights; undefined if the algorithm has no policy to export. */
const trainedPolicy = Effect.fnUntraced(function* ({ plan, envs, learner }: Training, step: number) {
  if (learner.policyGraph === undefined) return undefined
  const graph = yield* Effect.catchTag(learner.policyGraph, "GraphError", (error) => Effect.die(error))
  const { observationSpace, actionSpace } = plan.env
  const policy: TrainedPolicy = {
    ...graph,
    algorithm: plan.algorithm.name,
    env: plan.env.id,
    step,
    observationSpace,
    actionSpace,
    normalisation: envs.observationMoments === undefined ? undefined : constantsOf(envs.observationMoments),
  }
  return policy
})

/** Makes the content of `metrics.json` and the list of validations for `return.json`. */
const resultOf = Effect.fnUntraced(function* ({ learner }: Training, state: TrainingState) {
  const { files, seconds, secondsHere } = yield* CurrentRun
  const { step, stepsBefore, episodes, meanScore, meanReturn, evaluations, failedValidations } = state
  const here = yield* secondsHere
  const metrics: RunResult = {
    runDir: files.directory,
    steps: step,
    episodes,
    meanScore,
    meanReturn,
    validation: summaryOf(evaluations.at(-1)),
    failedValidations,
    digest: yield* digestOf(yield* learner.weights, state.scoreHash),
    wallSeconds: yield* seconds,
    stepsPerSecond: here > 0 ? (step - stepsBefore) / here : 0,
  }
  return { metrics, evaluations }
})
