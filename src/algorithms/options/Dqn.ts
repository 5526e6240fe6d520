// Written by `npm run settings` from the Schema and the comments on it.

import type { ExplorationOptions, NetworkOptions, ReplayOptions } from "./shared.ts"

/** The settings of `Dqn.make`. */
export interface DqnOptions extends ReplayOptions, ExplorationOptions, NetworkOptions {
  /**
   * The number of transitions that the replay buffer holds.
   * @default 100000
   */
  readonly bufferSize?: number
  /**
   * The number of transitions that an update learns from.
   * @default 64
   */
  readonly batchSize?: number
  /**
   * The number of env steps between two updates, over all envs.
   * @default 4
   */
  readonly trainEvery?: number
  /**
   * The sizes of the hidden layers.
   * @default [128,128]
   */
  readonly hidden?: ReadonlyArray<number>
  /**
   * The activation function between layers.
   * @default "relu"
   */
  readonly activation?: "tanh" | "relu"
  /**
   * The learning rate of Adam.
   * @default 0.0005
   */
  readonly learningRate?: number
  /**
   * The number of env steps between two copies of the online network into the target network; 0 never copies it.
   * @default 1000
   */
  readonly updateTargetFreq?: number
  /**
   * Chooses the next action by the online network and values it by the target network (van Hasselt et al. 2015).
   * @default true
   */
  readonly double?: boolean
  /**
   * Computes action values from two heads, one for the value and one for the advantages.
   * @default false
   */
  readonly dueling?: boolean
  /**
   * Prioritised replay: `{}` draws transitions with larger errors more often, null draws uniformly.
   * @default null
   */
  readonly prioritised?: {
    /**
     * The exponent of the priorities: 0 draws uniformly, 1 in proportion to the error.
     * @default 0.6
     */
    readonly alpha?: number
    /**
     * The exponent of the importance weights at the start; it rises to 1, a full correction of the bias, at the end
     * of the run.
     * @default 0.4
     */
    readonly beta?: number
    /**
     * The constant that is added to every error.
     * @default 0.000001
     */
    readonly epsilon?: number
  } | null
  /**
   * The constant that keeps Adam from dividing by zero.
   * @default 1e-8
   */
  readonly adamEpsilon?: number
}
