import type { NamedArrays, Task } from "../Algorithm.ts"
import type { Program } from "../../backend/Backend.ts"
import type { Declarations } from "../../model/trunk.ts"
import type { Loss, Minibatch } from "./programs.ts"
import type { Rollout } from "./Rollout.ts"

/** Tasks that are learnt beside the main one, by the same network, from a memory of what was seen. */
export interface Auxiliary {
  readonly parameters: Declarations
  /** Added to the first phase's loss; what it needs beside the rollout it asks for with `given`. */
  readonly loss: (batch: Minibatch) => Loss
  readonly start: (task: Task, rollout: Rollout) => Beside
}

/** An auxiliary's memory. */
export interface Beside {
  /** Keeps what the rollout saw. */
  readonly remember: () => void
  /** Fills what the loss asked for. */
  readonly prepare: (iteration: number, feeds: Program["feeds"]) => void
  readonly state: () => NamedArrays
  readonly restore: (arrays: NamedArrays) => void
}
