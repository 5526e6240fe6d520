// Written by `npm run settings` from the Schema and the comments on it.

import type { LearningOptions, MemoryOptions } from "./shared.ts"

/** The settings of `Daac.make`. */
export interface DaacOptions extends LearningOptions, MemoryOptions {
  /**
   * The weight of the policy's entropy in the loss; more keeps the policy from becoming certain too soon.
   * @default 0.01
   */
  readonly entropyCoefficient?: number
  /**
   * The number of steps for which actions are drawn with the same noise: more than 1 explores in longer pushes.
   * @default 1
   */
  readonly noiseRepeat?: number
  /**
   * The learning rate of Adam.
   * @default 0.0005
   */
  readonly learningRate?: number
  /**
   * The number of env steps that each env takes between two updates.
   * @default 128
   */
  readonly nsteps?: number
  /**
   * The number of passes of the policy over each rollout.
   * @default 1
   */
  readonly epochs?: number
  /**
   * The number of minibatches that a rollout is shuffled into, in each pass.
   * @default 8
   */
  readonly minibatches?: number
  /**
   * The λ of the returns: 0 gives one-step targets, 1 gives full returns.
   * @default 0.95
   */
  readonly lambda?: number
  /**
   * The clip range: the probability ratio is clipped to 1 ± this.
   * @default 0.2
   */
  readonly clip?: number
  /**
   * Normalises the advantages of each minibatch to mean 0 and standard deviation 1.
   * @default true
   */
  readonly normalizeAdvantages?: boolean
  /**
   * The KL limit: an update ends at the first minibatch whose approximate KL divergence exceeds 1.5 times this.
   * null sets no limit.
   * @default null
   */
  readonly targetKl?: number | null
  /**
   * The constant that keeps Adam from dividing by zero.
   * @default 0.00001
   */
  readonly adamEpsilon?: number
  /**
   * The number of passes of the critic over each rollout.
   * @default 9
   */
  readonly valueEpochs?: number
  /**
   * The weight, in the policy's loss, of the error of its predicted advantage.
   * @default 0.25
   */
  readonly advantageCoefficient?: number
}
