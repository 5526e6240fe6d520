// Written by `npm run settings` from the Schema and the comments on it.

import type { NetworkOptions, ReplayOptions } from "./shared.ts"

/** The settings of `Sac.make`. */
export interface SacOptions extends ReplayOptions, NetworkOptions {
  /**
   * The activation function between layers.
   * @default "relu"
   */
  readonly activation?: "tanh" | "relu"
  /**
   * The number of steps for which actions are drawn with the same noise: more than 1 explores in longer pushes.
   * @default 1
   */
  readonly noiseRepeat?: number
  /**
   * The learning rate of the actor and of the temperature, and of the critics unless `criticLearningRate` is set.
   * @default 0.0003
   */
  readonly learningRate?: number
  /**
   * The learning rate of the critics; null takes the actor's.
   * @default null
   */
  readonly criticLearningRate?: number | null
  /**
   * The share by which the target critics move towards the critics in each update.
   * @default 0.005
   */
  readonly tau?: number
  /**
   * The entropy temperature, which is the weight of the policy's entropy; null learns it.
   * @default null
   */
  readonly alpha?: number | null
  /**
   * The entropy that a learned temperature keeps, for actions in −1 … 1; null is minus the number of an action's
   * elements.
   * @default null
   */
  readonly targetEntropy?: number | null
}
