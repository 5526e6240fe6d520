// Written by `npm run settings` from the Schema and the comments on it.

import type { PpoOptions } from "./Ppo.ts"

/** The settings of `Rnd.make`. */
export interface RndOptions extends PpoOptions {
  /**
   * The discount factor of the bonus.
   * @default 0.99
   */
  readonly gammaIntrinsic?: number
  /**
   * The weight of the advantages of the env's rewards.
   * @default 2
   */
  readonly extrinsicCoefficient?: number
  /**
   * The weight of the advantages of the bonus.
   * @default 1
   */
  readonly intrinsicCoefficient?: number
  /**
   * Whether the returns of the bonus end with the episode, as those of the env's reward do.
   * @default false
   */
  readonly episodic?: boolean
  /**
   * The number of random steps in each env before the first rollout; their observations initialise the
   * normalisation.
   * @default 600
   */
  readonly initObsSteps?: number
  /**
   * The share of rows that the predictor learns from; null is 32 divided by the number of envs, at most 1.
   * @default null
   */
  readonly predictionShare?: number | null
  /**
   * The predictor's learning rate as a share of `learningRate`. If it is too high, the bonus vanishes too soon.
   * @default 0.1
   */
  readonly predictionPace?: number
  /**
   * The number of features of an observation that the predictor predicts.
   * @default 64
   */
  readonly predictionSize?: number
}
