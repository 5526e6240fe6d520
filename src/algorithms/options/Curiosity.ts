// Written by `npm run settings` from the Schema and the comments on it.

import type { A2cOptions } from "./A2c.ts"

/** The settings of `Curiosity.make`. */
export interface CuriosityOptions extends A2cOptions {
  /**
   * The weight of the curiosity bonus, the forward model's error, that is added to the reward.
   * @default 0.1
   */
  readonly curiosityCoefficient?: number
  /**
   * The share of the forward model's loss in the loss of both models; the inverse model's has the rest.
   * @default 0.2
   */
  readonly forwardShare?: number
  /**
   * The weight of the loss of both models, compared with the policy's loss.
   * @default 1
   */
  readonly curiosityLossCoefficient?: number
  /**
   * The number of features that an observation is encoded as.
   * @default 32
   */
  readonly featureSize?: number
}
