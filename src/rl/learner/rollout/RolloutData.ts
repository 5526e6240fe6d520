/**
 * Defines the data of a rollout (columns, rewards and ends of episodes), and the hooks of features that the rollout
 * calls.
 */
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { type Action, type Arrays, type F32, f32 } from "../Batch.ts"
import type { Steps } from "../drive.ts"

/** A column of kept numbers: the actor computes one for each observation, such as its value, for use in the update. */
export interface Kept extends F32 {
  readonly kept: true
}

export const kept = (): Kept => ({ ...f32(), kept: true })

/** The columns that every rollout has. Actors that keep more numbers, and features, add their own columns. */
export type BaseColumns = {
  readonly observations: F32
  readonly actions: Action
  /** The critic's values of the observations. */
  readonly values: Kept
  readonly advantages: F32
  /** The returns that the critic learns to predict. */
  readonly targets: F32
}

/** The arrays of the columns that the actor keeps; other columns have no array here. */
type KeptArrays<C> = { readonly [Name in keyof C]: C[Name] extends Kept ? Float32Array : undefined }

/** A rollout: T steps of N envs. Its arrays are flat and time-major: the row of step t and env n is t · N + n. */
export interface Rollout<out C> {
  readonly steps: number
  readonly numEnvs: number
  readonly columns: Arrays<C>
  readonly rewards: Float32Array
  readonly terminated: Uint8Array
  readonly truncated: Uint8Array
  /** The kept numbers for the observations after the last step: one for each env in each array. */
  readonly last: KeptArrays<C>
  /** The kept numbers for final observations of truncated episodes, in the rows of the episodes' last steps only. */
  readonly atTruncation: KeptArrays<C>
  /** Returns the number of rows that were truncated and not also terminated. */
  readonly truncations: () => number
  /** Plays the rollout, and fills all columns except `advantages`, `targets` and those of features. */
  readonly collect: (envs: AnyBatchEnv, iteration: number) => Steps<void>
}

/** The functions of a feature (an addition to a learner, such as a memory) that the rollout calls. */
export interface StepHooks {
  /** Runs before the first step. */
  readonly start?: () => void
  /** Runs before the actor acts at step t. At t = T, after the last step, the actor only computes kept numbers. */
  readonly beforeAct?: (t: number) => void
  readonly afterStep?: (envs: AnyBatchEnv, t: number) => void
  /** Runs after a step that truncated this env's episode. The actor evaluates its final observation later. */
  readonly truncated?: (env: number) => void
  /** Runs before the actor evaluates the final observations of `count` truncated episodes, from number `first` on. */
  readonly beforeTruncated?: (first: number, count: number) => void
}
