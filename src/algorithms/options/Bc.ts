// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Bc.make`. */
export interface BcOptions {
  /**
   * The sizes of the hidden layers; for images, of those after the convolutions.
   *
   * @default [64,64]
   */
  readonly hidden?: ReadonlyArray<number>

  /**
   * The activation function between layers, for vectors; networks over images always use rectifiers.
   *
   * @default "tanh"
   */
  readonly activation?: "tanh" | "relu"

  /**
   * The convolutions for image observations [channels, height, width]; null chooses them by the image's size.
   *
   * @default null
   */
  readonly convolutions?: ReadonlyArray<{
    readonly filters: number
    readonly kernel: number
    readonly stride: number
  }> | null

  /**
   * The settings of a planner below the heads, for maps as images: `{}` takes its defaults; null uses no planner.
   *
   * @default null
   */
  readonly planning?: {
    /**
     * The number of sweeps over the map, about as many as the longest path has steps.
     *
     * @default 12
     */
    readonly iterations?: number
    /**
     * The number of filters of the layer that computes rewards from the observation.
     *
     * @default 32
     */
    readonly filters?: number
    /**
     * The number of channels of the planner's own actions.
     *
     * @default 10
     */
    readonly actions?: number
    /**
     * The index of the observation's plane that shows where the agent is.
     *
     * @default 2
     */
    readonly agentPlane?: number
  } | null

  /**
   * The learning rate of Adam.
   *
   * @default 0.001
   */
  readonly learningRate?: number

  /**
   * The course of the learning rate: `linear` lowers it to 0 over the run, `constant` keeps it.
   *
   * @default "constant"
   */
  readonly schedule?: "constant" | "linear"

  /**
   * The number of demonstrated steps that an update learns from.
   *
   * @default 64
   */
  readonly batchSize?: number

  /**
   * The weight of the policy's entropy in the loss; more keeps the policy less certain than the demonstrations
   * alone do.
   *
   * @default 0
   */
  readonly entropyCoefficient?: number

  /**
   * The global norm that gradients are scaled down to; 0 does not limit them.
   *
   * @default 0
   */
  readonly maxGradNorm?: number
}
