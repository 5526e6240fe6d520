/** Runs the callbacks of a training, and applies what they ask for. The loop in `Trainer.ts` calls it. */
import { Cause, Effect } from "effect"
import { messageOf } from "../../base/config/text.ts"
import type { Metrics } from "../learner/Algorithm.ts"
import type { ValidationOutcome } from "../../run/evaluation.ts"
import type { RunEvent } from "../../run/record/RunEvent.ts"
import { type Boundary, CallbackError, type Seen, type Started, type Steering } from "./Callback.ts"
import type { Plan } from "./plan.ts"
import type { TrainingState } from "./TrainingState.ts"

/** The callbacks of a running training, for its loop. */
export interface Callbacks {
  /** Whether a callback runs after every rollout. */
  readonly watchesRollouts: boolean
  /** Whether a callback runs after every update, so that the loop must take the metrics of each one. */
  readonly watchesUpdates: boolean
  /** Whether a callback sees the checkpoints after they are written. */
  readonly watchesCheckpoints: boolean
  /** Returns the learning rate to use in place of the scheduled one. */
  readonly steer: (scheduled: number) => number
  readonly afterRollout: (stepsOfRollout: number) => Effect.Effect<void, CallbackError>
  readonly afterUpdate: Effect.Effect<void, CallbackError>
  readonly afterValidation: (validation: ValidationOutcome) => Effect.Effect<void, CallbackError>
  readonly afterCheckpoint: (checkpoint: string) => Effect.Effect<void, CallbackError>
  /** Keeps the learner's metrics, which callbacks see. */
  readonly see: (metrics: Metrics) => void
  /** Returns the events that callbacks have made since the last call. */
  readonly takeEvents: () => ReadonlyArray<RunEvent>
}

/** Starts the callbacks of a plan with the numbers in the state. From then on, the state holds what they change. */
export const startCallbacks = ({ callbacks, settings }: Plan, state: TrainingState): Callbacks => {
  const started = callbacks.map((callback) => callback.start(state.callbacks[callback.name]))
  // The state holds the objects themselves, so a checkpoint saves the numbers that they have by then.
  state.callbacks = Object.fromEntries(started.map(({ name, memory }) => [name, memory]))
  let events: Array<RunEvent> = []

  const seen = (step = state.step): Seen => ({
    step,
    totalSteps: settings.totalSteps,
    iteration: state.iteration,
    episodes: state.episodes,
    meanReturn: state.meanReturn,
    metrics: state.metrics,
  })
  const steering = (name: string, boundary: Boundary, step?: number): Steering => {
    const sight = seen(step)
    const refuse = (message: string) =>
      new CallbackError({ callback: name, boundary, message: `callback "${name}", ${boundary}: ${message}` })
    return {
      ...sight,
      stop: (reason) =>
        Effect.sync(() => {
          if (state.stopped !== null) return
          state.stopped = { by: name, reason }
          events.push({
            _tag: "Note",
            message: `the callback ${name} ends the training at step ${sight.step}: ${reason}`,
          })
        }),
      setLearningRate: (rate) =>
        Effect.suspend(() => {
          if (!(rate >= 0 && Number.isFinite(rate)))
            return Effect.fail(refuse(`setLearningRate: expected a number from 0 on, found ${rate}`))
          state.learningRate = rate
          state.learningRateFactor = 1
          return Effect.void
        }),
      scaleLearningRate: (factor) =>
        Effect.suspend(() => {
          if (!(factor >= 0 && Number.isFinite(factor)))
            return Effect.fail(refuse(`scaleLearningRate: expected a number from 0 on, found ${factor}`))
          const product = state.learningRateFactor * factor
          if (product === Infinity)
            return Effect.fail(refuse(`scaleLearningRate: by ${factor}, the product of all factors is infinite`))
          state.learningRateFactor = product
          return Effect.void
        }),
      log: (metrics) =>
        Effect.sync(() => {
          events.push({ _tag: "UpdateApplied", step: sight.step, update: state.iteration, metrics })
        }),
    }
  }

  /**
   * Runs a hook of all callbacks that have it, in their order. A failure or an exception becomes a CallbackError. So does an
   * interruption inside of a hook: after it the iteration is incomplete, and an interrupted run would save it.
   */
  const runAll = (boundary: Boundary, hookOf: (callback: Started) => Effect.Effect<void, unknown> | undefined) =>
    Effect.forEach(
      started,
      (callback) =>
        Effect.suspend(() => hookOf(callback) ?? Effect.void).pipe(
          Effect.catchCause((cause) => {
            const error = Cause.squash(cause)
            if (error instanceof CallbackError) return Effect.fail(error)
            const problem = Cause.hasInterruptsOnly(cause) ? "it was interrupted before its end" : messageOf(error)
            const message = `callback "${callback.name}", ${boundary}: ${problem}`
            return Effect.fail(new CallbackError({ callback: callback.name, boundary, message }))
          }),
        ),
      { discard: true },
    )

  return {
    watchesRollouts: started.some(({ afterRollout }) => afterRollout !== undefined),
    watchesUpdates: started.some(({ afterUpdate }) => afterUpdate !== undefined),
    watchesCheckpoints: started.some(({ afterCheckpoint }) => afterCheckpoint !== undefined),
    steer: (scheduled) => (state.learningRate ?? scheduled) * state.learningRateFactor,
    afterRollout: (stepsOfRollout) =>
      runAll("afterRollout", ({ name, afterRollout }) =>
        afterRollout?.(steering(name, "afterRollout", state.step + stepsOfRollout)),
      ),
    afterUpdate: runAll("afterUpdate", ({ name, afterUpdate }) => afterUpdate?.(steering(name, "afterUpdate"))),
    afterValidation: (validation) =>
      runAll("afterValidation", ({ name, afterValidation }) =>
        afterValidation?.({ ...steering(name, "afterValidation"), validation }),
      ),
    afterCheckpoint: (checkpoint) =>
      runAll("afterCheckpoint", ({ afterCheckpoint }) => afterCheckpoint?.({ ...seen(), checkpoint })),
    see: (metrics) => {
      if (started.length > 0) state.metrics = metrics
    },
    takeEvents: () => {
      const taken = events
      events = []
      return taken
    },
  }
}
