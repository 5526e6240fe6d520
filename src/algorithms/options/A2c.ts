// Written by `npm run settings` from the Schema and the comments on it.

import type { ActorCriticOptions } from "./shared.ts"

/** The settings of `A2c.make`. */
export interface A2cOptions extends ActorCriticOptions {
  /**
   * The learning rate of RMSProp.
   * @default 0.0007
   */
  readonly learningRate?: number
  /**
   * The number of env steps that each env takes between two updates.
   * @default 5
   */
  readonly nsteps?: number
  /**
   * The λ of the returns: 0 gives one-step targets, 1 gives full returns.
   * @default 1
   */
  readonly lambda?: number
  /**
   * The decay rate of RMSProp's running mean of squared gradients: the nearer to 1, the longer its memory.
   * @default 0.99
   */
  readonly rmspropDecay?: number
  /**
   * The constant that keeps RMSProp from dividing by zero.
   * @default 0.00001
   */
  readonly rmspropEpsilon?: number
}
