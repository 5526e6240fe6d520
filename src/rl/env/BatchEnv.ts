/** Declares the types of a batch of envs: options, results and functions. `Batch.make` and `EnvPool` make batches. */
import type { Effect } from "effect"
import type { EnvError } from "../../base/EnvError.ts"
import type { ActionSpace, RowSpace } from "./Space.ts"

/**
 * Says when an env whose episode ended is reset, in Gymnasium's terms.
 *
 * - `same-step`: in the step that ended the episode. The episode's last observation is in `finalObservations`.
 * - `next-step`: in the next step, which ignores its action and returns the first observation of the new episode, with
 *   reward 0, and neither `terminated` nor `truncated` set.
 * - `disabled`: when the caller calls `restart`. Until then, a step throws an `EnvError`.
 */
export type AutoReset = "same-step" | "next-step" | "disabled"

/** The saved state of a batch, as named arrays that a checkpoint can hold. */
export type Snapshot = Readonly<Record<string, Float64Array | Float32Array | Int32Array | Uint8Array>>

/** The options passed to an env's own `batch`. */
export interface EnvBatchOptions {
  /** The way in which an env starts again after an episode has ended. Default: `same-step`. */
  readonly autoReset: AutoReset
  /**
   * This number is added to the index of an env in the path of its random stream (see `reset`). If one set of envs is split into
   * several batches, set it to the number of envs in the batches before this one, so that no two envs share a stream.
   * Default: 0.
   */
  readonly firstIndex: number
  /** Truncates episodes at this many steps. Default: no limit. */
  readonly maxSteps?: number | undefined
  /** The arrays to write results to, e.g. in memory shared by threads. Without them, or if they don't fit: new ones. */
  readonly arrays?: BatchArrays | undefined
}

/** The results of a batch, one row per env. */
export interface BatchArrays {
  /** The current observation of each env: the first one of a new episode if the last step reset the env. */
  readonly observations: Float32Array
  /** The last observation, before a reset, of each env whose episode ended in this step; ignore the other rows. */
  readonly finalObservations: Float32Array
  readonly rewards: Float32Array
  readonly terminated: Uint8Array
  readonly truncated: Uint8Array
  /** 1 for each env whose episode was cut off in this step because its simulation diverged. Missing if none can. */
  readonly diverged?: Uint8Array
}

/**
 * The result of a function of `AnyBatchEnv`: an Effect that the caller must run, or nothing if the work is already
 * done.
 */
export type Wait = Effect.Effect<void, EnvError> | void

/**
 * N copies of an env, stepped together: a `BatchEnv` or an `AsyncBatchEnv`. Each `step` overwrites the result arrays, which
 * have one row per env. Rollouts and validations accept both kinds.
 */
export interface AnyBatchEnv extends BatchArrays {
  readonly id: string
  readonly numEnvs: number
  readonly autoReset: AutoReset
  /** The space of a row of `observations`: with a mask after each observation, if the env has action masks. */
  readonly observationSpace: RowSpace
  readonly actionSpace: ActionSpace
  /** The number of numbers in a row of `observations`. */
  readonly observationSize: number
  /** The number of elements in an action; it is 1 if actions are discrete. */
  readonly actionSize: number
  /** The rewards of the step to record, where they are not those to learn from: before they were clipped, for example. */
  readonly scores?: Float32Array
  /**
   * 1 for each env whose `terminated` is only the end of a life: for the agent the episode is over, but the game goes
   * on, and records and validations count all lives as one episode.
   */
  readonly livesLost?: Uint8Array
  /** True for an `AsyncBatchEnv`, whose functions return Effects. */
  readonly isAsync?: boolean
  /** Starts episode 0 of all envs. Env i draws episode k from stream (seed, ...path, firstIndex + i, "episode", k). */
  readonly reset: (seed: number, ...path: ReadonlyArray<string | number>) => Wait
  /** Starts the next episode of each env whose entry in `mask` is not 0, even if its episode has not ended. */
  readonly restart: (mask: Uint8Array) => Wait
  /**
   * Steps all envs. `actions` has `actionSize` numbers for each env, one env after the other; a choice is its index, a
   * switch 0 or 1. Throws or fails with an `EnvError` if an action is wrong or an env fails.
   */
  readonly step: (actions: Float32Array | Int32Array) => Wait
  /** Returns the state of the env at `index`, for searches. Missing if the states are elsewhere, as in other threads. */
  readonly stateAt?: (index: number) => unknown
  /** Returns a copy of the batch's state, from which `restore` continues with equal results, bit for bit. */
  readonly snapshot: () => Snapshot
  readonly restore: (snapshot: Snapshot) => Wait
}

/** Tells whether the last step ended the episode of an env, and not only one of its lives. */
export const hasEpisodeEnded = ({ terminated, truncated, livesLost }: AnyBatchEnv, index: number): boolean =>
  (terminated[index] | truncated[index]) !== 0 && livesLost?.[index] !== 1

/** A batch in this process. Its functions have done their work when they return. */
export interface BatchEnv extends AnyBatchEnv {
  readonly isAsync?: false
  readonly reset: (seed: number, ...path: ReadonlyArray<string | number>) => void
  readonly restart: (mask: Uint8Array) => void
  readonly step: (actions: Float32Array | Int32Array) => void
  /** Renders the env at `index` as lines of text. Missing if the env has no `renderText`. */
  readonly renderText?: (index: number) => string
  /** Renders the env at `index` as an SVG document. Missing if the env has no `renderSvg`. */
  readonly renderSvg?: (index: number) => string
  readonly restore: (snapshot: Snapshot) => void
}

/**
 * A batch whose envs run elsewhere: in other processes, or across a network. Its functions are Effects, and the result
 * arrays are valid when they have succeeded. Its auto-reset is always `same-step`.
 */
export interface AsyncBatchEnv extends AnyBatchEnv {
  readonly isAsync: true
  readonly reset: (seed: number, ...path: ReadonlyArray<string | number>) => Effect.Effect<void, EnvError>
  readonly restart: (mask: Uint8Array) => Effect.Effect<void, EnvError>
  readonly step: (actions: Float32Array | Int32Array) => Effect.Effect<void, EnvError>
  /** Renders the env at `index` as an SVG document. Missing if the env cannot be rendered. */
  readonly renderSvg?: (index: number) => Effect.Effect<string, EnvError>
  /**
   * Restores the envs by playing their current episodes again, from the seed and the saved actions. If a replayed
   * episode differs, because the env is not deterministic, it ends as truncated in the next step.
   */
  readonly restore: (snapshot: Snapshot) => Effect.Effect<void, EnvError>
}

/**
 * The episodes that finished since the last `clear`, in the order of their ends. Each array has one number per episode;
 * only the first `length` numbers count, since the arrays have room for more episodes.
 */
export interface EpisodeLog {
  readonly length: number
  /** The index of the env in the batch. */
  readonly envs: Int32Array
  /** The number of the episode, counted from 0 for each env. */
  readonly episodes: Int32Array
  readonly returns: Float64Array
  readonly lengths: Int32Array
  /** The step of the batch in which the episode ended, from 1. */
  readonly steps: Float64Array
  readonly terminated: Uint8Array
  readonly truncated: Uint8Array
  readonly diverged: Uint8Array
  readonly clear: () => void
}
