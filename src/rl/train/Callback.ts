/**
 * Defines callbacks of a training: Effects that run after a rollout, an update, a validation or a checkpoint. They see
 * the training's progress, and may stop it, change its learning rate, or log metrics. `Train.run` takes a list of them.
 *
 * A callback keeps its numbers in `memory`, which checkpoints save together with the changes that it made, so that a
 * resumed run ends with the same bits as one that was never stopped.
 *
 * @example
 * ```ts
 * const patient = Callback.make({
 *   name: "patient",
 *   memory: { best: -Infinity, waited: 0 },
 *   afterValidation: ({ validation, memory, scaleLearningRate, stop }) => {
 *     memory.waited = validation.meanReturn > memory.best ? 0 : memory.waited + 1
 *     memory.best = Math.max(memory.best, validation.meanReturn)
 *     if (memory.waited === 0) return Effect.void
 *     return memory.waited < 3 ? scaleLearningRate(0.5) : stop("three validations without a better return")
 *   },
 * })
 * const validation = { everySteps: 10_000 }
 * Train.run({ env: CartPole.env, algorithm: Ppo.make(), totalSteps: 100_000, validation, callbacks: [patient] })
 * ```
 */
import { Effect, Predicate } from "effect"
import { display } from "../../base/config/Config.ts"
import type { LearningError, Metrics } from "../learner/Learner.ts"
import type { ValidationOutcome } from "../../run/evaluation.ts"

/** The boundaries of a training at which a callback runs. */
export type Boundary = "afterRollout" | "afterUpdate" | "afterValidation" | "afterCheckpoint"

/** The numbers that a callback keeps from one call to the next. */
export type Memory = Record<string, number>

/** The progress of a training that its callbacks see. */
export interface Seen {
  /** The number of env steps so far, over all envs. */
  readonly step: number
  /** The number of env steps of the whole training. */
  readonly totalSteps: number
  /** The number of iterations (a rollout and its update) completed so far. */
  readonly iteration: number
  /** The number of training episodes that have ended. */
  readonly episodes: number
  /** The mean return of the last hundred training episodes; null if none has ended. */
  readonly meanReturn: number | null
  /**
   * The learner's metrics, such as `losses/policy_loss`: after an update those of this update, elsewhere the last that were
   * recorded. There are none before the first update.
   */
  readonly metrics: Metrics
}

/** The progress that a callback sees, and the changes that it may make. */
export interface Steering extends Seen {
  /** Ends the training after this iteration: it validates and saves as at its regular end. The log has the reason. */
  readonly stop: (reason: string) => Effect.Effect<void>
  /** Sets the learning rate, which from now on replaces the schedule of the algorithm. */
  readonly setLearningRate: (rate: number) => Effect.Effect<void, LearningError>
  /** Multiplies the learning rate, of a schedule too, by this factor from now on. */
  readonly scaleLearningRate: (factor: number) => Effect.Effect<void, LearningError>
  /** Records metrics by name, next to the learner's. Names without a slash are shown on their own in TensorBoard. */
  readonly log: (metrics: Metrics) => Effect.Effect<void>
}

/** The validation that has just ended. */
interface Validated {
  readonly validation: ValidationOutcome
}

/**
 * The checkpoint that was just saved. A callback cannot change the training here, since a checkpoint is also saved when
 * the run is interrupted.
 */
interface Saved {
  /** The folder of the checkpoint, in the run's folder. */
  readonly checkpoint: string
}

/** The Effects of a callback. If one fails, the run ends with a `LearningError`. */
export interface Hooks<M> {
  /** Runs after each rollout, before its update. */
  readonly afterRollout?: (training: Steering & { readonly memory: M }) => Effect.Effect<void, unknown>
  /** Runs after each update, maybe thousands of times a second, so keep it short. */
  readonly afterUpdate?: (training: Steering & { readonly memory: M }) => Effect.Effect<void, unknown>
  /** Runs after each validation. */
  readonly afterValidation?: (training: Steering & Validated & { readonly memory: M }) => Effect.Effect<void, unknown>
  /** Runs after each checkpoint. The hook cannot change the training, and its changes of `memory` may be lost. */
  readonly afterCheckpoint?: (training: Seen & Saved & { readonly memory: Readonly<M> }) => Effect.Effect<void, unknown>
}

/** A callback that has started in a run, with its memory. */
export interface Started {
  readonly name: string
  /** The numbers that the hooks read and change. */
  readonly memory: Memory
  readonly afterRollout: ((training: Steering) => Effect.Effect<void, unknown>) | undefined
  readonly afterUpdate: ((training: Steering) => Effect.Effect<void, unknown>) | undefined
  readonly afterValidation: ((training: Steering & Validated) => Effect.Effect<void, unknown>) | undefined
  readonly afterCheckpoint: ((training: Seen & Saved) => Effect.Effect<void, unknown>) | undefined
}

/** A callback of a training. `make` makes one. */
export interface Callback {
  /** The name that config files and messages use for the callback. */
  readonly name: string
  /** Starts the callback with the numbers of a checkpoint, or with the initial ones. Only the training calls this. */
  readonly start: (saved: Readonly<Memory> | undefined) => Started
}

/** Makes a callback from its name, its initial numbers, and an Effect for each boundary at which it runs. */
export const make = <M extends Memory = Record<never, number>>(
  definition: Hooks<M> & { readonly name: string; readonly memory?: M },
): Callback => {
  const { name, afterRollout, afterUpdate, afterValidation, afterCheckpoint } = definition
  return {
    name,
    start: (saved) => {
      const memory: M = Object.assign({}, definition.memory, saved)
      return {
        name,
        memory,
        afterRollout: afterRollout && ((training) => effectOf(afterRollout({ ...training, memory }))),
        afterUpdate: afterUpdate && ((training) => effectOf(afterUpdate({ ...training, memory }))),
        afterValidation: afterValidation && ((training) => effectOf(afterValidation({ ...training, memory }))),
        afterCheckpoint: afterCheckpoint && ((training) => effectOf(afterCheckpoint({ ...training, memory }))),
      }
    },
  }
}

/** Returns what a hook returned, and throws if that is not an Effect: in JavaScript, a `return` is easily forgotten. */
const effectOf = (returned: Effect.Effect<void, unknown>): Effect.Effect<void, unknown> => {
  if (Effect.isEffect(returned)) return returned
  throw new TypeError(
    `expected the hook to return an Effect, found ${display(returned)}; return the Effect, such as \`return stop("…")\`, or Effect.void`,
  )
}

/** Describes why a value that code passed is not a list of callbacks with different names; undefined if it is one. */
export const callbacksProblemOf = (callbacks: unknown): string | undefined => {
  if (!Array.isArray(callbacks)) return `expected a list of callbacks, found ${display(callbacks)}`
  const other: unknown = callbacks.find((one) => !isCallback(one))
  if (other !== undefined) return `expected callbacks, as Callback.make gives, found ${display(other)}`
  const names = callbacks.filter(isCallback).map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  return twice === undefined ? undefined : `two callbacks are called "${twice}"; give each a name of its own`
}

const isCallback = (value: unknown): value is Callback =>
  Predicate.hasProperty(value, "name") && typeof value.name === "string" && Predicate.hasProperty(value, "start")
