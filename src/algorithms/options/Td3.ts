// Written by `npm run settings` from the Schema and the comments on it.

import type { NetworkOptions, ReplayOptions } from "./shared.ts"

/** The settings of `Td3.make`. */
export interface Td3Options extends ReplayOptions, NetworkOptions {
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
   * The learning rate of the actor and of the critics.
   * @default 0.001
   */
  readonly learningRate?: number
  /**
   * The share by which the target networks move towards the online networks, each time the actor learns.
   * @default 0.005
   */
  readonly tau?: number
  /**
   * The standard deviation of the noise on actions in play, as a share of half an action's range.
   * @default 0.1
   */
  readonly explorationNoise?: number
  /**
   * The standard deviation of the noise on target actions, as a share of half an action's range.
   * @default 0.2
   */
  readonly targetNoise?: number
  /**
   * The bound of the noise on target actions, which is clipped to plus and minus this.
   * @default 0.5
   */
  readonly targetNoiseClip?: number
  /**
   * The number of updates of the critics for each update of the actor.
   * @default 2
   */
  readonly policyDelay?: number
}
