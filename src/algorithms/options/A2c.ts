// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `A2c.make`. */
export interface A2cOptions {
  /**
   * The discount factor of future rewards. In self-play it is negative, as the next value is the opponent's: see
   * `TicTacToe.selfPlay`.
   *
   * @default 0.99
   */
  readonly gamma?: number

  /**
   * The global norm that gradients are scaled down to; 0 does not limit them.
   *
   * @default 0.5
   */
  readonly maxGradNorm?: number

  /**
   * The course of the learning rate: `linear` lowers it to 0 over the run, `constant` keeps it.
   *
   * @default "linear"
   */
  readonly schedule?: "constant" | "linear"

  /**
   * The kind of value targets: `NSTEP` is `LAMBDA` with λ = 1, and `GAE` gives the same targets as `LAMBDA`.
   *
   * @default "GAE"
   */
  readonly returns?: "GAE" | "LAMBDA" | "NSTEP"

  /**
   * The unit of training: `onestep` learns after every step of the envs, whatever `nsteps` says.
   *
   * @default "nstep"
   */
  readonly trainMode?: "nstep" | "onestep"

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
   * The number of units of an LSTM after the hidden layers; 0 makes a network without memory.
   *
   * @default 0
   */
  readonly lstm?: number

  /**
   * The number of steps that gradients flow back through the memory; it must divide `nsteps`. 0 is the whole
   * rollout.
   *
   * @default 0
   */
  readonly sequence?: number

  /**
   * The weight of the policy's entropy in the loss; more keeps the policy from becoming certain too soon.
   *
   * @default 0.01
   */
  readonly entropyCoefficient?: number

  /**
   * The weight of the critic's error in the loss: in PPO of half the squared error, in A2C of all of it (without
   * the ½).
   *
   * @default 0.5
   */
  readonly valueCoefficient?: number

  /**
   * The number of steps for which actions are drawn with the same noise: more than 1 explores in longer pushes.
   *
   * @default 1
   */
  readonly noiseRepeat?: number

  /**
   * The learning rate of RMSProp.
   *
   * @default 0.0007
   */
  readonly learningRate?: number

  /**
   * The number of env steps that each env takes between two updates.
   *
   * @default 5
   */
  readonly nsteps?: number

  /**
   * The λ of the returns: 0 gives one-step targets, 1 gives full returns.
   *
   * @default 1
   */
  readonly lambda?: number

  /**
   * The decay rate of RMSProp's running mean of squared gradients: the nearer to 1, the longer its memory.
   *
   * @default 0.99
   */
  readonly rmspropDecay?: number

  /**
   * The constant that keeps RMSProp from dividing by zero.
   *
   * @default 0.00001
   */
  readonly rmspropEpsilon?: number
}
