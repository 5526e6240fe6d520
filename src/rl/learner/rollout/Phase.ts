/** Defines the phases of an on-policy learner's update: which rows each one reads, its loss, and how it is divided. */
import type { OptimiserOf } from "../../../tensor/graph/optimiserSettings.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import type { Recall } from "../../model/memory.ts"
import type { Weights } from "../../model/trunk.ts"
import type { Batch } from "../Batch.ts"
import type { Loss, Net } from "../graphs.ts"
import type { ScheduledInputs } from "../scheduled.ts"

/** The tensors of a minibatch that a loss reads. */
export interface Minibatch<C> {
  /** The columns of the minibatch's rows. */
  readonly batch: Batch<C>
  /** The weights that are learned. */
  readonly weights: Weights
  /** The weights that were drawn once and are never learned. */
  readonly fixed: Weights
  /** The memory before each sequence, if the actor has a memory. */
  readonly recall: Recall | undefined
  /**
   * Scales a column to mean 0 and standard deviation 1 over the whole minibatch, even if `batch` is only a slice of it.
   */
  readonly standardised: (column: Tensor) => Tensor
}

/** The rows that a phase reads, and how often. */
interface Passes {
  /** The name of its program and, if there are several phases, of its optimiser's state in checkpoints. */
  readonly name: string
  /** The number of passes over the rollout. */
  readonly epochs: number
  /** The number of minibatches into which the shuffled rollout is divided in each epoch. */
  readonly minibatches: number
  /** The key of the setting that has the number of minibatches, for messages; `minibatches` by default. */
  readonly minibatchesKey?: string
}

/** A part of an update, with its own loss and epochs. PPO has one phase; DAAC has one for each of its two networks. */
export interface Phase<C> extends Passes {
  /** The limit of the global norm of gradients; larger ones are scaled down to it. 0 sets no limit. */
  readonly maxGradNorm: number
  readonly loss: (minibatch: Minibatch<C>) => Loss
  /** The inputs that the loss reads and that change over the run, such as a clip range with a schedule. */
  readonly scheduledInputs?: ScheduledInputs | undefined
  /**
   * The number of slices of each minibatch; up to as many processes can compute their gradients. 1 by default. With
   * more slices, the loss and the metrics must be means over the rows.
   */
  readonly slices?: number | undefined
  readonly optimiser: OptimiserOf
  /** Returns whether the phase learns the parameter of this name; the others keep their values. By default it learns all. */
  readonly learns?: ((parameter: string) => boolean) | undefined
}

/** A phase that computes the next weights itself, because it needs more than the gradient of a loss. */
export interface SteppingPhase<C> extends Passes {
  readonly slices?: undefined
  readonly scheduledInputs?: undefined
  /** Returns the weights after a minibatch, as a flat vector, and the metrics to report. `net` has the weights before it. */
  readonly step: (
    minibatch: Minibatch<C>,
    net: Net,
  ) => { readonly next: Tensor; readonly metrics: Readonly<Record<string, Tensor>> }
}

/** A phase of either kind. */
export type AnyPhase<C> = Phase<C> | SteppingPhase<C>
