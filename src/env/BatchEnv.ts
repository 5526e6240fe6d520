import type { Box, Space } from "./Space.ts"

/**
 * Says when an env whose episode ended is reset, in Gymnasium's terms.
 *
 * - `same-step`: in the step that ended the episode. Its last observation is in `finalObservations`.
 * - `next-step`: in the next step, which ignores its action and returns the first observation of the new episode, with
 *   reward 0 and no flag set.
 * - `disabled`: by `restart`. Stepping an ended env throws an `EnvError`.
 */
export type AutoReset = "same-step" | "next-step" | "disabled"

export type Snapshot = Readonly<Record<string, Float64Array | Float32Array | Int32Array | Uint8Array>>

/** The options passed to an env's own `batch`. */
export interface BatchOptions {
  /** The way in which an env starts again after an episode has ended. Default: `same-step`. */
  readonly autoReset: AutoReset
  /**
   * The index of the first env in the random streams. Set it if one set of envs is split into several batches, so that each
   * env keeps its own stream. Default: 0.
   */
  readonly firstIndex: number
  /** Truncates episodes at this many steps. Default: no limit. */
  readonly maxSteps?: number | undefined
  /** The arrays to write results to, if their lengths match, such as arrays that other threads share. Default: new ones. */
  readonly arrays?: BatchArrays | undefined
}

/** The results of a batch, one row per env. */
export interface BatchArrays {
  /** The observations to act on. If an env was reset in the same step, this is the first observation of its new episode. */
  readonly observations: Float32Array
  /** The last observation of each env whose episode ended in this step, before any reset; else unspecified. */
  readonly finalObservations: Float32Array
  readonly rewards: Float32Array
  readonly terminated: Uint8Array
  readonly truncated: Uint8Array
}

/** N copies of an env, stepped together. `step` allocates nothing: it overwrites the flat arrays, one row per env. */
export interface BatchEnv extends BatchArrays {
  readonly id: string
  readonly numEnvs: number
  readonly autoReset: AutoReset
  readonly observationSpace: Box
  readonly actionSpace: Space
  readonly observationSize: number
  /** The number of elements in an action; it is 1 if actions are discrete. */
  readonly actionSize: number
  /** Starts episode 0 of all envs. Episode k of env i has the stream (seed, ...path, firstIndex + i, "episode", k). */
  readonly reset: (seed: number, ...path: ReadonlyArray<string | number>) => void
  /** Starts the next episode of each env whose mask is not 0, even if its current episode has not ended. */
  readonly restart: (mask: Uint8Array) => void
  /** Takes numEnvs × actionSize numbers; a discrete action is its index. Throws an `EnvError`. */
  readonly step: (actions: Float32Array | Int32Array) => void
  /** Draws one of the envs, if the env can be drawn. */
  readonly renderText?: (index: number) => string
  readonly renderSvg?: (index: number) => string
  /** Returns all that is needed to continue from here, bit for bit. */
  readonly snapshot: () => Snapshot
  readonly restore: (snapshot: Snapshot) => void
}
