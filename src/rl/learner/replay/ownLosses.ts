/** Declares losses of the user's own in algorithms with a replay buffer: what they get of a batch and of the networks. */
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import type { Batch } from "../Batch.ts"
import type { AlgorithmsLoss, LossResult } from "../ownLoss.ts"
import type { ReplayColumns } from "./ReplayExperience.ts"

/** The columns of a batch of transitions that a loss of the user's own reads. */
export type TransitionBatch = Omit<Batch<ReplayColumns>, "noise">

/** A loss of the user's own, in place of the algorithm's: a function of a batch and of the networks' outputs. */
export type OwnReplayLoss<Outputs extends AlgorithmsLoss> = (batch: TransitionBatch, out: Outputs) => LossResult

/**
 * The outputs that a loss of the user's own for the critics of real-valued actions gets. All actions are as the env gets them,
 * within its bounds.
 */
export interface CriticOutputs extends AlgorithmsLoss {
  /** Each critic's values of the batch's actions, of shape [rows]; TQC's critics have quantiles, of shape [rows, quantiles]. */
  readonly values: ReadonlyArray<Tensor>
  /** The target of all critics, without a gradient: [rows], or [rows, quantiles] of TQC. */
  readonly target: Tensor
  /** Computes each critic's values of other observations and actions. */
  readonly evaluate: (observations: Tensor, actions: Tensor) => ReadonlyArray<Tensor>
  /** Computes the actor's best actions, without noise. No gradient flows through them: the critics' step does not move the actor. */
  readonly act: (observations: Tensor) => Tensor
}

/** The outputs that a loss of the user's own for an actor with real-valued actions gets. Actions are within the env's bounds. */
export interface ActorOutputs extends AlgorithmsLoss {
  /** The actor's actions for the batch's observations, through which the gradient flows; SAC draws them. */
  readonly actions: Tensor
  /** Each critic's values of these actions, after the critics' own step; TQC has one, the mean of all quantiles. */
  readonly values: ReadonlyArray<Tensor>
  /** Computes these values of other observations and actions. */
  readonly evaluate: (observations: Tensor, actions: Tensor) => ReadonlyArray<Tensor>
  /** Computes the actor's best actions, without noise. */
  readonly act: (observations: Tensor) => Tensor
}
