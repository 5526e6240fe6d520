// Written by `npm run settings` from the Schema and the comments on it.

import type { ActorCriticOptions } from "./shared.ts"

/** The settings of `Ppo.make`. */
export interface PpoOptions extends ActorCriticOptions {
  /**
   * The learning rate of Adam.
   * @default 0.00025
   */
  readonly learningRate?: number
  /**
   * The number of env steps that each env takes between two updates.
   * @default 128
   */
  readonly nsteps?: number
  /**
   * The number of passes over each rollout.
   * @default 4
   */
  readonly epochs?: number
  /**
   * The number of minibatches that a rollout is shuffled into, in each pass.
   * @default 4
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
   * Clips the change of the value by the same bound.
   * @default true
   */
  readonly clipValue?: boolean
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
}
