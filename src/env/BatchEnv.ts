import type { Box, Space } from "./Space.ts"

/** What happens to an env whose episode ended (Gymnasium's words). */
export type AutoReset = "same-step" | "next-step" | "disabled"

export type Snapshot = Readonly<Record<string, Float64Array | Float32Array | Int32Array | Uint8Array>>

/**
 * N copies of an env stepped together. Arrays are flat, row after row, and the same objects for the batch's whole life:
 * `step` overwrites them. No allocation a step.
 */
export interface BatchEnv {
  readonly id: string
  readonly numEnvs: number
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
  /** Starts episode 0 of every env: env i draws from the stream (seed, ...path, i, "episode", k). */
  readonly reset: (seed: number, ...path: ReadonlyArray<string | number>) => void
  /** numEnvs × actionSize numbers; a discrete action is its number. Throws EnvError. */
  readonly step: (actions: Float32Array | Int32Array) => void
  /** Everything needed to go on from here, bit for bit. */
  readonly snapshot: () => Snapshot
  readonly restore: (snapshot: Snapshot) => void
}
