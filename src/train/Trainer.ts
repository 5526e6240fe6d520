import { Cause, Clock, Effect, Exit } from "effect"
import type { Learner, LearnerError, SetupError } from "../learner/Algorithm.ts"
import type { CheckpointError } from "../run/Checkpoint.ts"
import type { Env } from "../env/Env.ts"
import type { RunStoreError } from "../run/store/RunStoreError.ts"
import type { Recording } from "../run/record/Recorder.ts"
import type { RunEvent } from "../run/record/RunEvent.ts"
import { type Restore, supervised } from "./supervised.ts"
import type { TrainingEnvs } from "./envs.ts"
import type { RunState } from "./RunState.ts"
import type { Decided } from "./plan.ts"
import type { Validator } from "./validation/Validator.ts"

/** What the loop works with: everything set up, nothing about how. */
export interface Training {
  readonly settings: Decided
  readonly learner: Learner
  readonly env: Env
  readonly envs: TrainingEnvs
  readonly validator: Validator | undefined
  /** Keeps what there is to look at and to take away, and says where. */
  readonly writeStepFolder: Effect.Effect<string, LearnerError | RunStoreError> | undefined
  /** Whether somebody wants to see this moment, and how it is kept for them. */
  readonly isStepWanted: Effect.Effect<boolean>
  readonly writeWantedStep: Effect.Effect<string, SetupError | LearnerError | RunStoreError> | undefined
  readonly state: RunState
  readonly recording: Recording
  readonly startedAtMillis: number
  /** Steps that were done when this process took over. */
  readonly startedAtStep: number
  readonly saveCheckpoint: Effect.Effect<string, CheckpointError | RunStoreError | LearnerError>
}

export type LoopError = LearnerError | CheckpointError | RunStoreError

/** Has a multiple of `every` been crossed since the last time? (Not `step % every`: a batch may step over it.) */
export const crossed = (last: number, step: number, every: number): boolean =>
  every > 0 && Math.floor(step / every) > Math.floor(last / every)

/**
 * The synchronous multi-env training loop: collect → learn → record, with validations and checkpoints where their step
 * counts are crossed. Each iteration is uninterruptible, so whenever the loop is stopped, state is at a boundary
 * between iterations and a checkpoint of it resumes bit for bit.
 */
export const trainLoop = Effect.fnUntraced(function* (training: Training): Effect.fn.Return<void, LoopError> {
  const { settings, state } = training
  const { onStart } = settings.checkpoint
  if (onStart && state.step === 0) yield* Effect.uninterruptible(checkpoint(training))

  while (true) {
    if (owesValidation(training)) yield* validate(training)
    if (owesRendering(training)) yield* render(training)
    if (yield* training.isStepWanted) yield* showNow(training)

    const stopping = isStopping(training)
    if (stopping || owesCheckpoint(training)) yield* Effect.uninterruptible(checkpoint(training))
    if (stopping) return

    yield* Effect.uninterruptible(iterate(training))
    yield* Effect.yieldNow
  }
})

type Progress = Pick<Training, "settings" | "state">

const isStopping = ({ settings, state }: Progress): boolean => {
  const { stopAtReturn, totalSteps } = settings
  return state.step >= totalSteps || (stopAtReturn !== null && (state.scoreHere ?? -Infinity) >= stopAtReturn)
}

const owesValidation = ({ settings, state }: Progress): boolean => {
  const { everySteps } = settings.validation
  const owesLast = state.step >= settings.totalSteps && everySteps > 0 && state.lastValidationStep < state.step
  return owesLast || crossed(state.lastValidationStep, state.step, everySteps)
}

const owesRendering = ({ settings, state }: Progress): boolean =>
  crossed(state.lastRenderStep, state.step, settings.render.everySteps)

/** Whether a run that is resumed has nothing left to do. */
export const isOver = (progress: Progress): boolean =>
  isStopping(progress) && !owesValidation(progress) && !owesRendering(progress)

/** Iterations until something is due: a validation, a checkpoint, the end, or simply a record of how it goes. */
const iterate = Effect.fnUntraced(function* (training: Training): Effect.fn.Return<void, LoopError> {
  const { learner, envs, state, recording, settings } = training
  const { rollout, update, target } = learner
  const from = state.step
  const events: Array<RunEvent> = []
  do {
    const position = { iteration: state.iteration, step: state.step }
    const steps = yield* rollout(envs, position)
    endedEpisodes(training, events)
    yield* update(position)
    state.step += steps
    state.iteration++
    if (target !== undefined && crossed(position.step, state.step, target.everySteps)) yield* target.update
  } while (state.step - from < settings.recordEvery && !isDue(training))
  const seconds = ((yield* Clock.currentTimeMillis) - training.startedAtMillis) / 1000
  events.push({
    _tag: "UpdateApplied",
    step: state.step,
    update: state.iteration,
    metrics: { ...learner.metrics(), ...charts(training, seconds) },
  })
  yield* recording.emit(events)
})

const isDue = ({ settings, state }: Training): boolean =>
  state.step >= settings.totalSteps ||
  crossed(state.lastValidationStep, state.step, settings.validation.everySteps) ||
  owesCheckpoint({ settings, state })

const owesCheckpoint = ({ settings, state }: Progress): boolean =>
  // The best can only be told apart, and kept, where there is one to every score.
  (settings.checkpoint.strategy._tag === "TopKValidation" &&
    state.scoreHere !== null &&
    state.lastCheckpointStep < state.step) ||
  crossed(state.lastCheckpointStep, state.step, settings.checkpoint.everySteps) ||
  crossed(state.lastCheckpointEpisode, state.episodes, settings.checkpoint.everyEpisodes)

/** An episode that can't be shown is no reason to stop. */
const render = Effect.fn("effect-rl.render")(function* (training: Training): Effect.fn.Return<void, LoopError> {
  const { state, recording, writeStepFolder } = training
  if (writeStepFolder === undefined) return
  const told = writeStepFolder.pipe(
    Effect.map((path) => ({ _tag: "Note" as const, message: `step ${state.step} to look at: ${path}` })),
    Effect.catchTag(["EnvError", "LearningError", "BackendError"], (error) =>
      Effect.succeed({ _tag: "Warning" as const, message: `rendering at step ${state.step} failed: ${error.message}` }),
    ),
  )
  const event = yield* told
  // Not before: one that is interrupted is done again by who goes on.
  state.lastRenderStep = state.step
  yield* recording.emit([event])
})

/** For somebody who wants to see it now; nothing that the training goes on from, or is judged by, is touched. */
const showNow = Effect.fn("effect-rl.showNow")(function* (training: Training): Effect.fn.Return<void, LoopError> {
  const { state, recording, writeWantedStep } = training
  const failed = (problem: string) => ({
    _tag: "Warning" as const,
    message: `step ${state.step} was wanted and can't be shown: ${problem}`,
  })
  const event =
    writeWantedStep === undefined
      ? failed("the algorithm has no policy that could be played")
      : yield* writeWantedStep.pipe(
          Effect.map((path) => ({ _tag: "Note" as const, message: `step ${state.step}, as was wanted: ${path}` })),
          Effect.catch((error) => Effect.succeed(failed(error.message))),
        )
  yield* recording.emit([event])
})

const charts = ({ state, startedAtStep }: Training, seconds: number): Record<string, number> => {
  const { meanReturn, meanLength } = state
  const speed: Record<string, number> = seconds > 0 ? { "charts/SPS": (state.step - startedAtStep) / seconds } : {}
  return meanReturn === null || meanLength === null
    ? speed
    : { ...speed, "charts/episodic_return": meanReturn, "charts/episodic_length": meanLength }
}

/** Counts the episodes that ended in the last collect, and tells of them. */
const endedEpisodes = ({ envs, state, env, learner }: Training, events: Array<RunEvent>): void => {
  const { episodes, numEnvs } = envs
  const played = learner.plays === "one episode each" ? new Uint8Array(numEnvs) : undefined
  for (let at = 0; at < episodes.length; at++) {
    if (played !== undefined && played[episodes.envs[at]]++ > 0) continue
    const total = episodes.returns[at]
    const length = episodes.lengths[at]
    const truncated = episodes.truncated[at] === 1
    events.push({
      _tag: "EpisodeEnded",
      step: episodes.steps[at] * numEnvs,
      episode: state.addEpisode(total, length),
      env: episodes.envs[at],
      return: total,
      length,
      terminated: episodes.terminated[at] === 1,
      truncated,
      truncationReason: truncated ? (length >= (env.maxSteps ?? Infinity) ? "max_steps" : "env") : null,
    })
  }
  episodes.clear()
  state.trim()
}

/** A validation that fails is reported and counted, and the training goes on without its score. */
const validate = Effect.fn("effect-rl.validate")(function* (training: Training): Effect.fn.Return<void, LoopError> {
  const { validator, settings, state, recording } = training
  if (validator === undefined) return
  const outcome = yield* validator.validate(settings.seed, state.step).pipe(
    Effect.catch((error) => {
      state.failedValidations++
      state.lastValidationStep = state.step
      return recording
        .emit([{ _tag: "Warning", message: `validation at step ${state.step} failed: ${error.message}` }])
        .pipe(Effect.as(undefined))
    }),
  )
  if (outcome === undefined) return
  yield* Effect.uninterruptible(
    Effect.suspend(() => {
      state.addValidation(outcome)
      return recording.emit([{ _tag: "ValidationEnded", step: state.step, seenEpisodes: state.episodes, ...outcome }])
    }),
  )
})

const checkpoint = Effect.fn("effect-rl.checkpoint")(function* ({
  state,
  recording,
  saveCheckpoint,
}: Training): Effect.fn.Return<void, LoopError> {
  yield* recording.flush
  state.lastCheckpointStep = state.step
  state.lastCheckpointEpisode = state.episodes
  const path = yield* saveCheckpoint
  yield* recording.emit([{ _tag: "CheckpointSaved", step: state.step, path }])
})

/** Runs the loop to whatever end it comes to, as `supervised` does. */
export const supervise = (training: Training, restore: Restore): Effect.Effect<void, LoopError> =>
  supervised<LoopError>(
    {
      loop: trainLoop(training),
      isSaved: () => isSaved(training),
      conclude: (end) => concludeRun(training, end),
    },
    restore,
  )

const isSaved = (training: Training): boolean =>
  isOver(training) && training.state.lastCheckpointStep === training.state.step

const concludeRun = Effect.fnUntraced(function* (
  training: Training,
  exit: Exit.Exit<void, LoopError>,
): Effect.fn.Return<void, LoopError> {
  const { state, recording } = training
  const ended = (reason: "finished" | "interrupted" | "failed", message: string | null) =>
    recording.emit([{ _tag: "RunEnded", step: state.step, episodes: state.episodes, reason, message }])

  if (Exit.isSuccess(exit)) return yield* ended("finished", null)
  // With a failure beside it, the iteration was left half done, and a checkpoint of that could not be resumed.
  if (Cause.hasInterruptsOnly(exit.cause)) {
    // Nobody may be told that it can be resumed when that could not be saved.
    yield* Effect.tapError(checkpoint(training), (error) => Effect.ignore(ended("failed", error.message)))
    return yield* ended("interrupted", null)
  }
  // What failed is already known; that its record could not be written (the disk is full) would only hide it.
  return yield* Effect.ignore(ended("failed", Cause.pretty(exit.cause)))
})
