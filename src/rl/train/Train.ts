/**
 * Makes trainings by reinforcement learning as Effects, and executes them. Programs and the `effect` command call it.
 */
import { Clock, Effect, Option, type Scope } from "effect"
import { Backend } from "../../tensor/backend/Backend.ts"
import { Dispatcher } from "../../spread/cluster/Dispatcher.ts"
import { attempt } from "../../base/config/attempt.ts"
import { isPlain, toCamelCase } from "../../base/config/Config.ts"
import { rowSpaceOf } from "../env/Env.ts"
import { EnvError } from "../../base/EnvError.ts"
import { constantsOf } from "../env/Normalise.ts"
import { Ranks } from "../../spread/ranks/Ranks.ts"
import { TrainingRanks } from "../../spread/ranks/TrainingRanks.ts"
import type { SetupError } from "../learner/Learner.ts"
import { settled } from "../learner/drive.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import { digestOf } from "../../run/digest.ts"
import { summaryOf } from "../../run/evaluation.ts"
import * as Layout from "../../run/Layout.ts"
import type { Recorder } from "../../run/record/Recorder.ts"
import * as OneRun from "../../run/Run.ts"
import { RunResult, speedOf } from "../../run/RunResult.ts"
import type { RunSpec } from "../../run/RunSpec.ts"
import { Serving } from "../../run/spread/Serving.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import { RunStore } from "../../run/store/RunStore.ts"
import type { RunIdentity } from "../../run/identifier.ts"
import type { TrainedPolicy } from "../learner/TrainedPolicy.ts"
import { ValidationRequest } from "../../run/ValidationRequest.ts"
import { CheckpointRequest } from "./validate.ts"
import { checkCheckpointFolder, checkTotalSteps, deviceWarnings, saveCheckpoint } from "./checkpointing.ts"
import { configOf, type Plan, plan } from "./plan.ts"
import { changesOf, restore, sharedSettings } from "./resume.ts"
import { RunOptions, sentTraining } from "../../run/RunOptions.ts"
import type { TrainInput } from "./Settings.ts"
import { setUp, type Training } from "./setUp.ts"
import { begin, readSource, type Source } from "./start.ts"
import { earlyEndOf, isOver, type LoopError, trainLoop } from "./Trainer.ts"
import { TrainingState } from "./TrainingState.ts"
import { filmOf } from "./validation/rendering.ts"
import { handlersOf, identityOf, validateAnywhere } from "./validation/spread.ts"

export { validate } from "./validate.ts"

export type TrainError = SetupError | LoopError

/** A training that has not started. It trains when it runs with Layers for the backend, the store and the recorder. */
export type Run = Effect.Effect<RunResult, TrainError, Backend | RunStore | Recorder>

/** Makes a training from settings, envs and an algorithm. The training runs when its Layers are provided. */
export const run = (input: TrainInput): Run => {
  const { config, values } = configOf(input)
  return plan(config, values).pipe(
    Effect.flatMap((planned) => execute(planned, false)),
    Effect.scoped,
  )
}

/**
 * Makes a training from the content of a run's `config.yaml`, which has the env and the algorithm by name. `lines` maps
 * each key to the place where it was written, for error messages.
 */
export const fromConfig = (config: unknown, { lines }: { readonly lines?: ReadonlyMap<string, string> } = {}): Run => {
  const tree = toCamelCase(config)
  return plan(isPlain(tree) ? tree : {}, {}, lines).pipe(
    Effect.flatMap((planned) => execute(planned, true)),
    Effect.scoped,
  )
}

/**
 * Executes a plan: trains, or if `Train.validate` requests it, validates a checkpoint instead. `isConfig` tells whether the
 * plan's config describes all of it, so that other machines can make it again.
 */
const execute = Effect.fnUntraced(function* (
  planned: Plan,
  isConfig: boolean,
): Effect.fn.Return<RunResult, TrainError, Backend | RunStore | Recorder | Scope.Scope> {
  const { settings, env, algorithm } = planned
  const options = yield* RunOptions
  const { population, onPlanned } = options
  const identity = {
    name: settings.name,
    population: { environment: env.id, algorithm: algorithm.name, ...population },
    seed: settings.seed,
  }
  if (onPlanned !== undefined) yield* onPlanned(identity, planned.effective)
  const startedAtMillis = yield* Clock.currentTimeMillis
  const request = yield* ValidationRequest
  const serving = yield* Serving
  const isNew = request === undefined && serving === undefined && !(yield* RunStore).resumes
  const source = isNew && settings.start !== null ? yield* readSource(settings.start, planned.from) : undefined
  const plan = source === undefined ? planned : startingFrom(planned, source)
  const sent = sentTraining(options, isConfig ? plan.effective : undefined)
  const training: Training = { ...(yield* setUp(plan)), sent }
  if (serving !== undefined) {
    const identity = yield* identityOf(training)
    return yield* serving.offer({ identity, handlers: handlersOf(training, serving.read) })
  }
  const program = {
    spec: specOf(training, identity),
    startedAtMillis,
    places: Layout.places({ checkpoints: settings.checkpoint.dir, logs: settings.logDir }),
    open: (files: RunFiles, saved: OneRun.Saved<TrainingState> | undefined) => open(training, source, files, saved),
    improves: settings.machineCode,
    loop: (state: TrainingState) => withRanks(settings.ranks, trainLoop(training, state)),
    saving: {
      schema: TrainingState,
      settings: yield* sharedSettings(training),
      changes: changesOf(training),
      strategy: settings.checkpoint.strategy,
      check: (files: RunFiles) => checkCheckpointFolder(plan, files),
      save: (state: TrainingState) => saveCheckpoint(training, state),
      isSaved: (state: TrainingState) => isOver(settings, state) && state.lastCheckpointStep === state.step,
      // When an iteration fails, the state is incomplete: a training could not be resumed from a checkpoint of it.
      savesOnFailure: false,
    },
    position: ({ step, episodes }: TrainingState) => ({ step, episodes }),
    earlyEndOf: (state: TrainingState) => earlyEndOf(settings, state),
    result: { schema: RunResult, of: (state: TrainingState) => resultOf(training, state) },
  }
  if (request === undefined) return yield* OneRun.execute(program)
  return yield* OneRun.inspect<TrainingState, RunResult, RunResult, TrainError, Backend | RunStore>(
    program,
    request.checkpoint,
    (state) => validated(training, state, request),
  )
})

/** Runs the loop of a training, with other processes that compute a part of its gradients. */
const withRanks = Effect.fnUntraced(function* <A, E, R>(count: number, loop: Effect.Effect<A, E, R>) {
  if (count === 1) return yield* loop
  const starter = yield* Effect.serviceOption(TrainingRanks)
  if (Option.isSome(starter)) return yield* Effect.provideService(loop, Ranks, yield* starter.value.start(count))
  yield* Effect.logWarning("ranks: this process computes all slices; on Node, others help with Node.trainingRanks")
  return yield* loop
}, Effect.scoped)

/**
 * Returns the plan with the path of the chosen checkpoint in the setting `start`, instead of the run that the config
 * names.
 */
const startingFrom = (plan: Plan, { start }: Source): Plan => ({
  ...plan,
  settings: { ...plan.settings, start },
  effective: { ...plan.effective, start },
})

/** Describes the run for its files and its first record. */
const specOf = ({ plan, learner }: Training, identity: RunIdentity): RunSpec => {
  const { settings, env, algorithm, effective } = plan
  const { totalSteps, seed, numEnvs, logLevel, start } = settings
  const origin = start === null ? "" : `, from the weights of ${start.from}`
  return {
    kind: "training",
    identity,
    config: effective,
    description: settings.description ?? `${algorithm.name} on ${env.id}, ${totalSteps} steps, seed ${seed}${origin}`,
    env: env.id,
    algorithm: algorithm.name,
    devices: learner.devices,
    total: totalSteps,
    numEnvs,
    logLevel,
  }
}

const nothingToSend =
  "the cluster has nothing to do: other machines play only the validations of a training, and compute its gradients, and this one has neither validation.every_steps nor ranks"

const playedHere =
  "the validations are played in this process: only the built-in validator spreads its episodes over other machines"

const notSent =
  "the validations are played in this process, because other machines can only load a training that is made in code from its program: start it with effect run PROGRAM.ts --cluster"

/** Says what of a training does not run on the machines of its cluster, though a user may expect it. */
const warningsOfSending = (validator: Training["validator"], isSent: boolean, ranks: number): ReadonlyArray<string> => {
  if (validator === undefined) return ranks > 1 ? [] : [nothingToSend]
  if (validator.name !== undefined) return [playedHere]
  return isSent ? [] : [notSent]
}

/** Resets the envs and makes a new state, maybe with the weights of another run; for a resumed run, restores envs, learner and state from a checkpoint. */
const open = Effect.fnUntraced(function* (
  training: Training,
  source: Source | undefined,
  files: RunFiles,
  saved: OneRun.Saved<TrainingState> | undefined,
): Effect.fn.Return<OneRun.Opened<TrainingState, RunResult>, TrainError, Backend | RunStore> {
  const { plan, envs, learner, sent, validator } = training
  const { settings } = plan
  const notes = [...plan.notes]
  if (validator?.name !== undefined) notes.push(`validations are played by ${validator.name}`)
  const warnings = [...plan.warnings]
  const { inFlight } = yield* Dispatcher
  const state = saved?.state ?? new TrainingState({})
  const devicesBefore = state.devices
  state.devices = learner.devices
  if (saved === undefined) {
    // A run that stopped before its first checkpoint starts over, so it reads the other run once more.
    const from = source ?? (settings.start === null ? undefined : yield* readSource(settings.start, plan.from))
    if (from !== undefined) {
      warnings.push(...(yield* begin(training, from)))
      const { weights } = from.start
      const parts = weights === "all" ? "all weights" : `the weights of ${weights.join(", ")}`
      notes.push(`started with ${parts} of ${from.start.from}`)
    }
    yield* settled(() => envs.reset(settings.seed, "env"))
    // Take a snapshot now: an env that cannot save its state should fail here, not after hours of training.
    yield* attempt(() => envs.snapshot(), EnvError)
  } else {
    yield* restore(training, files, saved)
    yield* checkTotalSteps(plan, files, state)
    // If the callback that ended the training is no longer in the config, the resumed training continues.
    if (state.stopped !== null && !settings.callbacks.includes(state.stopped.by)) state.stopped = null
  }
  const { warnings: backendWarnings = Effect.succeed([]) } = yield* Backend
  return {
    state,
    resumedFromStep: saved === undefined ? null : state.step,
    isOver: () => isOver(settings, state),
    notes,
    warnings: [
      ...warnings,
      ...(inFlight === undefined ? [] : warningsOfSending(validator, sent !== undefined, settings.ranks)),
      ...(saved === undefined ? [] : deviceWarnings(learner.devices, devicesBefore)),
      ...(yield* backendWarnings),
    ],
  }
})

/** Validates a restored checkpoint with the training's settings. Returns the run's metrics with this validation. */
const validated = Effect.fnUntraced(function* (
  training: Training,
  state: TrainingState,
  { onPlayed }: NonNullable<typeof ValidationRequest.Service>,
) {
  const { writeStepFolder } = training
  const { writesStepFolder, exportsPolicy, films = 0, onExported, onFilmed } = yield* CheckpointRequest
  const outcome = yield* validateAnywhere(training, state.step)
  const seconds = yield* (yield* CurrentRun).secondsOfWork
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
  if (films > 0) {
    const film = yield* Effect.scoped(filmOf(training, state.step, films))
    if (film !== undefined) onFilmed(film)
  }
  const steps = outcome?.episodes.reduce((sum, { length }) => sum + length, 0) ?? 0
  return { ...result.metrics, stepsPerSecond: speedOf(steps, seconds) }
})

/** Returns the policy as a graph with its weights; undefined if the algorithm has no policy to export. */
const trainedPolicy = Effect.fnUntraced(function* ({ plan, envs, learner }: Training, step: number) {
  if (learner.policyGraph === undefined) return undefined
  const graph = yield* Effect.catchTag(learner.policyGraph, "GraphError", (error) => Effect.die(error))
  const policy: TrainedPolicy = {
    ...graph,
    algorithm: plan.algorithm.name,
    env: plan.env.id,
    step,
    observationSpace: rowSpaceOf(plan.env),
    actionSpace: plan.env.actionSpace,
    normalisation:
      envs.observationMoments === undefined
        ? undefined
        : constantsOf(envs.observationMoments, { space: envs.observationSpace }),
  }
  return policy
})

/** Makes the content of `metrics.json` and the list of validations for `return.json`. */
const resultOf = Effect.fnUntraced(function* ({ learner }: Training, state: TrainingState) {
  const { files, seconds, secondsOfWork } = yield* CurrentRun
  const { step, stepsBefore, episodes, meanScore, meanReturn, evaluations, failedValidations, divergedEpisodes } = state
  // The digest takes time, too, so look at the clock before.
  const stepsPerSecond = speedOf(step - stepsBefore, yield* secondsOfWork)
  const metrics: RunResult = {
    runDir: files.directory,
    steps: step,
    episodes,
    meanScore,
    meanReturn,
    validation: summaryOf(evaluations.at(-1)),
    failedValidations,
    ...(divergedEpisodes !== undefined && { divergedEpisodes }),
    digest: yield* digestOf(yield* learner.weights, state.scoreHash),
    wallSeconds: yield* seconds,
    stepsPerSecond,
  }
  return { metrics, evaluations }
})
