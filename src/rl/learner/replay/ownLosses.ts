/**
 * Declares the user's own losses in algorithms with a replay buffer: which columns of a batch and outputs of networks
 * they get.
 */
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import type { Batch } from "../Batch.ts"
import type { AlgorithmsLoss, LossResult } from "../ownLoss.ts"
import type { ReplayColumns } from "./ReplayExperience.ts"

/** The columns of a batch of transitions that a loss of the user's own reads. */
export type TransitionBatch = Omit<Batch<ReplayColumns>, "noise">

/** A loss of the user's own, which replaces the algorithm's: a function of a batch and of the networks' outputs. */
export type OwnReplayLoss<Outputs extends AlgorithmsLoss> = (batch: TransitionBatch, out: Outputs) => LossResult

/**
 * The outputs that the user's own loss gets if it trains critics of real-valued actions. All actions are as the env
 * gets them, within its bounds.
 */
export interface CriticOutputs extends AlgorithmsLoss {
  /**
   * The values that each critic gives the batch's actions, of shape [rows]; TQC's critics have quantiles, of shape
   * [rows, quantiles].
   */
  readonly values: ReadonlyArray<Tensor>
  /** The target of all critics, without a gradient: [rows], or [rows, quantiles] of TQC. */
  readonly target: Tensor
  /** Computes the values that each critic gives other observations and actions. */
  readonly evaluate: (observations: Tensor, actions: Tensor) => ReadonlyArray<Tensor>
  /** Computes the actor's best actions, without noise. No gradient flows through them: the critics' step does not move the actor. */
  readonly act: (observations: Tensor) => Tensor
}

/**
 * The outputs that the user's own loss gets if it trains an actor with real-valued actions. Actions are within the
 * env's bounds.
 */
export interface ActorOutputs extends AlgorithmsLoss {
  /** The actor's actions for the batch's observations; the gradient flows through them. SAC samples them. */
  readonly actions: Tensor
  /**
   * The values that each critic, after its own step, gives these actions. TQC has only one, the mean of all quantiles.
   */
  readonly values: ReadonlyArray<Tensor>
  /** Computes the values that each critic gives other observations and actions. */
  readonly evaluate: (observations: Tensor, actions: Tensor) => ReadonlyArray<Tensor>
  /** Computes the actor's best actions, without noise. */
  readonly act: (observations: Tensor) => Tensor
}
