// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Es.make`. */
export interface EsOptions {
  /**
   * The learning rate of Adam.
   * @default 0.03
   */
  readonly learningRate?: number
  /**
   * The standard deviation of the perturbations of the weights.
   * @default 0.1
   */
  readonly deviation?: number
  /**
   * The weight decay: weights shrink by this share of the learning rate in each generation.
   * @default 0.005
   */
  readonly weightDecay?: number
  /**
   * The sizes of the hidden layers.
   * @default [32]
   */
  readonly hidden?: ReadonlyArray<number>
  /**
   * The activation function between layers.
   * @default "tanh"
   */
  readonly activation?: "tanh" | "relu"
  /**
   * The number of steps after which an episode counts with its return so far; 0 waits for the episode's end.
   * @default 10000
   */
  readonly maxEpisodeSteps?: number
}
