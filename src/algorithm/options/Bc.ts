// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Bc.make`. */
export interface BcOptions {
  /**
   * Hidden layers; for images, those after the convolutions.
   *
   * @default [64,64]
   */
  readonly hidden?: ReadonlyArray<number>

  /**
   * The activation function between layers, for vectors; networks over images use rectifiers throughout.
   *
   * @default "tanh"
   */
  readonly activation?: "tanh" | "relu"

  /**
   * For image observations [channels, height, width]; null chooses by the image's size.
   *
   * @default null
   */
  readonly convolutions?: ReadonlyArray<{
    readonly filters: number
    readonly kernel: number
    readonly stride: number
  }> | null

  /**
   * `{}` puts a planner below the heads (for maps as images); null doesn't.
   *
   * @default null
   */
  readonly planning?: {
    /**
     * Sweeps over the map: about as many as the longest way has steps.
     *
     * @default 12
     */
    readonly iterations?: number
    /**
     * Filters of the layer that makes a reward of what is seen.
     *
     * @default 32
     */
    readonly filters?: number
    /**
     * Channels of the planner's own actions.
     *
     * @default 10
     */
    readonly actions?: number
    /**
     * Which plane of the observation shows where the agent is.
     *
     * @default 2
     */
    readonly agentPlane?: number
  } | null

  /**
   * How far an update goes along its gradient.
   *
   * @default 0.001
   */
  readonly learningRate?: number

  /**
   * `linear` takes the learning rate down to 0 at the end of the run.
   *
   * @default "constant"
   */
  readonly schedule?: "constant" | "linear"

  /**
   * Demonstrated steps that an update learns from.
   *
   * @default 64
   */
  readonly batchSize?: number

  /**
   * Keeps the policy from being surer than the demonstrations make it.
   *
   * @default 0
   */
  readonly entropyCoefficient?: number

  /**
   * Gradients are scaled down to this global norm; 0 leaves them alone.
   *
   * @default 0
   */
  readonly maxGradNorm?: number
}
