// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Sac.make`. */
export interface SacOptions {
  /**
   * The discount of what comes later.
   *
   * @default 0.99
   */
  readonly gamma?: number

  /**
   * Transitions that are remembered.
   *
   * @default 1000000
   */
  readonly bufferSize?: number

  /**
   * Transitions that an update learns from.
   *
   * @default 256
   */
  readonly batchSize?: number

  /**
   * Env steps before the first update; they are played at random.
   *
   * @default 1000
   */
  readonly learningStarts?: number

  /**
   * Env steps between updates, over all envs; rounded up to whole steps of all of them.
   *
   * @default 1
   */
  readonly trainEvery?: number

  /**
   * Gradient steps of each update.
   *
   * @default 1
   */
  readonly gradientSteps?: number

  /**
   * Rewards in a transition before the value takes over.
   *
   * @default 1
   */
  readonly nsteps?: number

  /**
   * Gradients are scaled down to this global norm; 0 leaves them alone.
   *
   * @default 0
   */
  readonly maxGradNorm?: number

  /**
   * Hidden layers; for images, those after the convolutions.
   *
   * @default [64,64]
   */
  readonly hidden?: ReadonlyArray<number>

  /**
   * The activation function between layers.
   *
   * @default "relu"
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
   * Steps for which actions are drawn with the same noise: more than 1 explores in longer pushes.
   *
   * @default 1
   */
  readonly noiseRepeat?: number

  /**
   * How far an update goes along its gradient.
   *
   * @default 0.0003
   */
  readonly learningRate?: number

  /**
   * How far an update of the critics goes along its gradient; null takes what the actor's does.
   *
   * @default null
   */
  readonly criticLearningRate?: number | null

  /**
   * How far the target critics move towards the critics each update.
   *
   * @default 0.005
   */
  readonly tau?: number

  /**
   * What entropy is paid; null learns it.
   *
   * @default null
   */
  readonly alpha?: number | null

  /**
   * The entropy that a learnt temperature holds, of actions in −1 … 1; null is minus the number of their elements.
   *
   * @default null
   */
  readonly targetEntropy?: number | null
}
