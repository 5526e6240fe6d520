// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Es.make`. */
export interface EsOptions {
  /**
   * How far an update goes along its gradient.
   *
   * @default 0.03
   */
  readonly learningRate?: number

  /**
   * Deviation of the variations.
   *
   * @default 0.1
   */
  readonly deviation?: number

  /**
   * Weights shrink by this share of the learning rate each generation.
   *
   * @default 0.005
   */
  readonly weightDecay?: number

  /**
   * Hidden layers.
   *
   * @default [32]
   */
  readonly hidden?: ReadonlyArray<number>

  /**
   * The activation function between layers.
   *
   * @default "tanh"
   */
  readonly activation?: "tanh" | "relu"

  /**
   * An episode counts with what it has got by then; 0 waits for its end.
   *
   * @default 10000
   */
  readonly maxEpisodeSteps?: number
}
