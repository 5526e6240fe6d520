// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Td3.make`. */
export interface Td3Options {
  /**
   * The discount factor of future rewards.
   *
   * @default 0.99
   */
  readonly gamma?: number

  /**
   * The number of transitions that the replay buffer holds.
   *
   * @default 1000000
   */
  readonly bufferSize?: number

  /**
   * The number of transitions that an update learns from.
   *
   * @default 256
   */
  readonly batchSize?: number

  /**
   * The number of env steps before the first update; their actions are random.
   *
   * @default 1000
   */
  readonly learningStarts?: number

  /**
   * The number of env steps between two updates, over all envs; it is rounded up to whole steps of all envs.
   *
   * @default 1
   */
  readonly trainEvery?: number

  /**
   * The number of gradient steps in each update.
   *
   * @default 1
   */
  readonly gradientSteps?: number

  /**
   * The number of rewards in a transition before its target continues with the value.
   *
   * @default 1
   */
  readonly nsteps?: number

  /**
   * The global norm that gradients are scaled down to; 0 does not limit them.
   *
   * @default 0
   */
  readonly maxGradNorm?: number

  /**
   * The sizes of the hidden layers; for images, of those after the convolutions.
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
   * The number of steps for which actions are drawn with the same noise: more than 1 explores in longer pushes.
   *
   * @default 1
   */
  readonly noiseRepeat?: number

  /**
   * The learning rate of the actor and of the critics.
   *
   * @default 0.001
   */
  readonly learningRate?: number

  /**
   * The share by which the target networks move towards the online networks, each time the actor learns.
   *
   * @default 0.005
   */
  readonly tau?: number

  /**
   * The standard deviation of the noise on actions in play, as a share of half an action's range.
   *
   * @default 0.1
   */
  readonly explorationNoise?: number

  /**
   * The standard deviation of the noise on target actions, as a share of half an action's range.
   *
   * @default 0.2
   */
  readonly targetNoise?: number

  /**
   * The bound of the noise on target actions, which is clipped to plus and minus this.
   *
   * @default 0.5
   */
  readonly targetNoiseClip?: number

  /**
   * The number of updates of the critics for each update of the actor.
   *
   * @default 2
   */
  readonly policyDelay?: number
}
