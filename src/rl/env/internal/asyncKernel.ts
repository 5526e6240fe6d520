/**
 * Declares the kernel of an env that runs elsewhere, which in one exchange carries out a command for each env of a
 * batch.
 */
import type { Effect } from "effect"
import type { EnvError } from "../../../base/EnvError.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import type { AnyBatchEnv, Snapshot } from "../BatchEnv.ts"
import type { KernelArrays } from "./episodes.ts"

/** The commands of an exchange, one for each env. Foreign envs get these numbers in their messages. */
export const command = {
  /** Do nothing. */
  none: 0,
  /** Take a step. If it ends the episode, keep its last observation, and start the next episode. */
  step: 1,
  /** Take a step, after which the time limit is reached: the next episode starts in any case. */
  lastStep: 2,
  /** Leave the current episode, if there is one, and start the next one. */
  start: 3,
} as const

/** The arrays that a kernel reads and writes. */
export interface AsyncColumns extends Omit<KernelArrays, "diverged"> {
  readonly finalObservations: Float32Array
  readonly commands: Uint8Array
  /** Returns the random numbers of the episode that env `index` starts next. */
  readonly nextEpisode: (index: number) => Stream
}

/** The envs of a batch. */
export interface AsyncKernel {
  /**
   * Carries out the commands. For an env that took a step, writes the reward and `terminated`, and sets `truncated` (0
   * before the call) if the env itself ended the episode early. For an env whose episode ended, also writes the final
   * observation. If the env has masks, every row has one, except the row of a terminal state.
   */
  readonly exchange: (actions: Float32Array | Int32Array) => Effect.Effect<void, EnvError>
  readonly renderSvg?: (index: number) => Effect.Effect<string, EnvError>
  /** The results that `AnyBatchEnv` has by these names, which `exchange` writes for each env that took a step. */
  readonly recorded?: Required<Pick<AnyBatchEnv, "scores" | "livesLost">>
  /** Saves and loads the states of the envs, if the kernel has them. Then `restore` need not replay episodes. */
  readonly states?: {
    readonly save: () => Snapshot
    /** Copies saved states back; `streamOf` returns the random stream of an env's current episode. */
    readonly load: (saved: Snapshot, streamOf: (index: number) => Stream) => Effect.Effect<void, EnvError>
  }
  /**
   * Saves and loads state of the kernel other than the envs'. After `load`, episodes are replayed from their seeds and
   * actions.
   */
  readonly others?: { readonly save: () => Snapshot; readonly load: (saved: Snapshot) => Effect.Effect<void, EnvError> }
}
