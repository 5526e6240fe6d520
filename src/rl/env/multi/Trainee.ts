/** Declares the service through which an env can play against the policy that is being trained. */
import { Context, type Effect, type Scope } from "effect"
import type { BackendError, Program } from "../../../tensor/backend/Backend.ts"
import type { EnvError } from "../../../base/EnvError.ts"

/** The trained policy in a program of its own, with a copy of the weights. */
export interface TraineePolicy {
  /** Its inputs are `observations`, and maybe `noise` and `memory`; its outputs are `actions` and maybe `nextMemory`. */
  readonly program: Program
  /** Copies the current weights into the program. */
  readonly refresh: Effect.Effect<void, BackendError>
  /** Returns the program's copy of the weights, as one vector. */
  readonly read: Effect.Effect<Float32Array, BackendError>
  readonly write: (weights: Float32Array) => Effect.Effect<void, BackendError>
}

export interface TraineeService {
  readonly seed: number
  /** Compiles the policy for this number of rows; it samples actions as in training. */
  readonly policy: (rows: number) => Effect.Effect<TraineePolicy, EnvError, Scope.Scope>
  /** Runs an Effect after each update, with the number of updates so far. */
  readonly afterUpdate: (run: (updates: number) => Effect.Effect<void, BackendError>) => void
}

/** The training whose envs are being opened; undefined elsewhere. */
export const Trainee = Context.Reference<TraineeService | undefined>("effect-rl/env/Trainee", {
  defaultValue: () => undefined,
})
