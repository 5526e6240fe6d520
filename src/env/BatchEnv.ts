import type { Box, Space } from "./Space.ts"

/**
 * What happens to an env whose episode ended (Gymnasium's words).
 *
 * - `same-step`: it starts its next episode within the step that ended the last one; what it saw last is handed out in
 *   `finalObservations`.
 * - `next-step`: the step after the last one ignores its action and returns the next episode's first observation, with
 *   reward 0 and no flag set.
 * - `disabled`: it waits for `restart`; stepping it is an `EnvError`.
 */
export type AutoReset = "same-step" | "next-step" | "disabled"

export type Snapshot = Readonly<Record<string, Float64Array | Float32Array | Int32Array | Uint8Array>>

/** What an env's own `batch` is asked for. */
export interface BatchOptions {
  readonly autoReset: AutoReset
  /** The number of the batch's first env in the paths of random streams: where several batches share a seed and path. */
  readonly firstIndex: number
  /** Truncates at this many steps; no limit when left out. */
  readonly maxSteps?: number | undefined
  /** Where the batch is to keep what it hands out, for who shares it with others; used where the lengths fit. */
  readonly arrays?: BatchArrays | undefined
}

/** What a batch hands out, row after row. */
export interface BatchArrays {
  readonly observations: Float32Array
  readonly finalObservations: Float32Array
  readonly rewards: Float32Array
  readonly terminated: Uint8Array
  readonly truncated: Uint8Array
}

/**
 * N copies of an env stepped together. Arrays are flat, row after row, and the same objects for the batch's whole life:
 * `step` overwrites them. No allocation a step.
 */
export interface BatchEnv {
  readonly id: string
  readonly numEnvs: number
  readonly autoReset: AutoReset
  readonly observationSpace: Box
  readonly actionSpace: Space
  readonly observationSize: number
  /** 1 for a discrete action. */
  readonly actionSize: number
  /** What the policy sees next: after an auto-reset in the same step, the first observation of the new episode. */
  readonly observations: Float32Array
  readonly rewards: Float32Array
  readonly terminated: Uint8Array
  readonly truncated: Uint8Array
  /** Where an episode ended in this step, its last observation (before any reset); elsewhere unspecified. */
  readonly finalObservations: Float32Array
  /** Starts episode 0 of every env: episode k of env i draws from the stream (seed, ...path, firstIndex + i, "episode", k). */
  readonly reset: (seed: number, ...path: ReadonlyArray<string | number>) => void
  /** Starts the next episode of the envs whose mask is not 0, whether or not their last one ended. */
  readonly restart: (mask: Uint8Array) => void
  /** numEnvs × actionSize numbers; a discrete action is its number. Throws EnvError. */
  readonly step: (actions: Float32Array | Int32Array) => void
  /** A drawing of one of the envs, where the env has one. */
  readonly renderText?: (index: number) => string
  readonly renderSvg?: (index: number) => string
  /** Everything needed to go on from here, bit for bit. */
  readonly snapshot: () => Snapshot
  readonly restore: (snapshot: Snapshot) => void
}
