/** Runs the callbacks of a training, and applies what they ask for. The loop in `Trainer.ts` calls it. */
import { Cause, Effect } from "effect"
import { messageOf } from "../../base/text/text.ts"
import { LearningError, type Metrics } from "../learner/Learner.ts"
import type { ValidationOutcome } from "../../run/evaluation.ts"
import type { RunEvent } from "../../run/record/RunEvent.ts"
import { type Boundary, type Seen, type Started, type Steering } from "./Callback.ts"
import type { Plan } from "./plan.ts"
import type { TrainingState } from "./TrainingState.ts"

/** The callbacks of a running training, as the training loop uses them. */
export interface Callbacks {
  /** Whether a callback runs after every rollout. */
  readonly watchesRollouts: boolean
  /** Whether a callback runs after every update, so that the loop must take the metrics of each one. */
  readonly watchesUpdates: boolean
  /** Whether a callback sees the checkpoints after they are written. */
  readonly watchesCheckpoints: boolean
  /** Returns the learning rate to use in place of the scheduled one. */
  readonly steer: (scheduled: number) => number
  readonly afterRollout: (stepsOfRollout: number) => Effect.Effect<void, LearningError>
  readonly afterUpdate: Effect.Effect<void, LearningError>
  readonly afterValidation: (validation: ValidationOutcome) => Effect.Effect<void, LearningError>
  readonly afterCheckpoint: (checkpoint: string) => Effect.Effect<void, LearningError>
  /** Stores the learner's metrics, for the callbacks to see. */
  readonly see: (metrics: Metrics) => void
  /** Returns the events that callbacks have caused since the last call. */
  readonly takeEvents: () => ReadonlyArray<RunEvent>
}

/** The callbacks of a training, with what they see and change. */
interface Running {
  readonly state: TrainingState
  readonly totalSteps: number
  events: Array<RunEvent>
}

/** Starts the callbacks of a plan with the numbers in the state. From then on, the state holds what they change. */
export const startCallbacks = ({ callbacks, settings }: Plan, state: TrainingState): Callbacks => {
  const started = callbacks.map((callback) => callback.start(state.callbacks[callback.name]))
  // The state holds the objects themselves, so a checkpoint saves the numbers that they have by then.
  state.callbacks = Object.fromEntries(started.map(({ name, memory }) => [name, memory]))
  const running: Running = { state, totalSteps: settings.totalSteps, events: [] }
  return {
    watchesRollouts: started.some(({ afterRollout }) => afterRollout !== undefined),
    watchesUpdates: started.some(({ afterUpdate }) => afterUpdate !== undefined),
    watchesCheckpoints: started.some(({ afterCheckpoint }) => afterCheckpoint !== undefined),
    steer: (scheduled) => (state.learningRate ?? scheduled) * state.learningRateFactor,
    afterRollout: (stepsOfRollout) =>
      runAll(started, "afterRollout", ({ name, afterRollout }) =>
        afterRollout?.(steering(running, name, "afterRollout", state.step + stepsOfRollout)),
      ),
    afterUpdate: runAll(started, "afterUpdate", ({ name, afterUpdate }) =>
      afterUpdate?.(steering(running, name, "afterUpdate")),
    ),
    afterValidation: (validation) =>
      runAll(started, "afterValidation", ({ name, afterValidation }) =>
        afterValidation?.({ ...steering(running, name, "afterValidation"), validation }),
      ),
    afterCheckpoint: (checkpoint) =>
      runAll(started, "afterCheckpoint", ({ afterCheckpoint }) =>
        afterCheckpoint?.({ ...seenBy(running, state.step), checkpoint }),
      ),
    see: (metrics) => {
      if (started.length > 0) state.metrics = metrics
    },
    takeEvents: () => {
      const taken = running.events
      running.events = []
      return taken
    },
  }
}

/** Returns what a callback sees at a step. */
const seenBy = ({ state, totalSteps }: Running, step: number): Seen => ({
  step,
  totalSteps,
  iteration: state.iteration,
  episodes: state.episodes,
  meanReturn: state.meanReturn,
  metrics: state.metrics,
})

/** Returns what a callback sees, with the functions by which it changes the training. */
const steering = (running: Running, name: string, boundary: Boundary, step = running.state.step): Steering => {
  const { state } = running
  const seen = seenBy(running, step)
  const refuse = (message: string) =>
    Effect.fail(new LearningError({ reason: "callback", message: `callback "${name}", ${boundary}: ${message}` }))
  return {
    ...seen,
    stop: (reason) =>
      Effect.sync(() => {
        if (state.stopped !== null) return
        state.stopped = { by: name, reason }
        const message = `the callback ${name} ends the training at step ${seen.step}: ${reason}`
        running.events.push({ _tag: "Note", message })
      }),
    setLearningRate: (rate) =>
      Effect.suspend(() => {
        if (!(rate >= 0 && Number.isFinite(rate))) {
          return refuse(`setLearningRate: expected a number from 0 on, found ${rate}`)
        }
        state.learningRate = rate
        state.learningRateFactor = 1
        return Effect.void
      }),
    scaleLearningRate: (factor) =>
      Effect.suspend(() => {
        if (!(factor >= 0 && Number.isFinite(factor))) {
          return refuse(`scaleLearningRate: expected a number from 0 on, found ${factor}`)
        }
        const product = state.learningRateFactor * factor
        if (product === Infinity) {
          return refuse(`scaleLearningRate: by ${factor}, the product of all factors is infinite`)
        }
        state.learningRateFactor = product
        return Effect.void
      }),
    log: (metrics) =>
      Effect.sync(() => {
        running.events.push({ _tag: "UpdateApplied", step: seen.step, update: state.iteration, metrics })
      }),
  }
}

/**
 * Runs a hook of all callbacks that have it, in their order. A failure or an exception becomes a LearningError. An
 * interrupt inside a hook does, too: the iteration is then incomplete, and an interrupted run would save it.
 */
const runAll = (
  started: ReadonlyArray<Started>,
  boundary: Boundary,
  hookOf: (callback: Started) => Effect.Effect<void, unknown> | undefined,
): Effect.Effect<void, LearningError> =>
  Effect.forEach(
    started,
    (callback) =>
      Effect.suspend(() => hookOf(callback) ?? Effect.void).pipe(
        Effect.catchCause((cause) => {
          const error = Cause.squash(cause)
          if (error instanceof LearningError && error.reason === "callback") return Effect.fail(error)
          const problem = Cause.hasInterruptsOnly(cause) ? "it was interrupted before its end" : messageOf(error)
          const message = `callback "${callback.name}", ${boundary}: ${problem}`
          return Effect.fail(new LearningError({ reason: "callback", message }))
        }),
      ),
    { discard: true },
  )
