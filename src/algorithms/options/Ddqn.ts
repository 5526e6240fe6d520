// Written by `npm run settings` from the Schema and the comments on it.

import type { ExplorationOptions, LearningOptions, NetworkOptions } from "./shared.ts"

/** The settings of `Ddqn.make`. */
export interface DdqnOptions extends LearningOptions, ExplorationOptions, NetworkOptions {
  /**
   * The activation function between layers.
   * @default "relu"
   */
  readonly activation?: "tanh" | "relu"
  /**
   * The learning rate of Adam.
   * @default 0.001
   */
  readonly learningRate?: number
  /**
   * The number of env steps that each env takes between two updates.
   * @default 5
   */
  readonly nsteps?: number
  /**
   * The λ of the targets: 1 gives the n-step return, a smaller value mixes it with shorter ones.
   * @default 1
   */
  readonly lambda?: number
  /**
   * The number of env steps between two copies of the online network into the target network; 0 never copies it.
   * @default 1000
   */
  readonly updateTargetFreq?: number
  /**
   * The number of passes over each rollout.
   * @default 1
   */
  readonly epochs?: number
  /**
   * The number of minibatches that a rollout is shuffled into, in each pass.
   * @default 1
   */
  readonly minibatches?: number
  /**
   * Computes action values from two heads, one for the value and one for the advantages.
   * @default false
   */
  readonly dueling?: boolean
  /**
   * The constant that keeps Adam from dividing by zero.
   * @default 1e-8
   */
  readonly adamEpsilon?: number
}
