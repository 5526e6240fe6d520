// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `A2c.make`. */
export interface A2cOptions {
  /**
   * Below zero in a game against oneself, where what comes next is the other's: see `TicTacToe.selfPlay`.
   *
   * @default 0.99
   */
  readonly gamma?: number

  /**
   * Gradients are scaled down to this global norm; 0 leaves them alone.
   *
   * @default 0.5
   */
  readonly maxGradNorm?: number

  /**
   * `linear` anneals the learning rate to zero over the run.
   *
   * @default "linear"
   */
  readonly schedule?: "constant" | "linear"

  /**
   * How value targets are made: `NSTEP` is `LAMBDA` with λ = 1, and `GAE` gives the same targets as `LAMBDA`.
   *
   * @default "GAE"
   */
  readonly returns?: "GAE" | "LAMBDA" | "NSTEP"

  /**
   * `onestep` learns after every step of the envs, whatever `nsteps` says.
   *
   * @default "nstep"
   */
  readonly trainMode?: "nstep" | "onestep"

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
   * Units of a long short-term memory after the hidden layers; 0 for a network without memory.
   *
   * @default 0
   */
  readonly lstm?: number

  /**
   * Steps that gradients flow back through the memory; must divide `nsteps`. 0 is the whole rollout.
   *
   * @default 0
   */
  readonly sequence?: number

  /**
   * What the policy's entropy counts: more keeps it from being sure too soon.
   *
   * @default 0.01
   */
  readonly entropyCoefficient?: number

  /**
   * What the critic's error counts in the loss: in PPO half the squared error, in A2C all of it (without the ½).
   *
   * @default 0.5
   */
  readonly valueCoefficient?: number

  /**
   * Steps for which actions are drawn with the same noise: more than 1 explores in longer pushes.
   *
   * @default 1
   */
  readonly noiseRepeat?: number

  /**
   * How far an update goes along its gradient.
   *
   * @default 0.0007
   */
  readonly learningRate?: number

  /**
   * Env steps that each env takes between updates.
   *
   * @default 5
   */
  readonly nsteps?: number

  /**
   * Between one-step targets (0) and whole returns (1).
   *
   * @default 1
   */
  readonly lambda?: number

  /**
   * How slowly the mean square of the gradients is forgotten.
   *
   * @default 0.99
   */
  readonly rmspropDecay?: number

  /**
   * RMSProp's term that keeps it from dividing by zero.
   *
   * @default 0.00001
   */
  readonly rmspropEpsilon?: number
}
