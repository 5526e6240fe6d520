// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Daac.make`. */
export interface DaacOptions {
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
   * The number of steps for which actions are drawn with the same noise: more than 1 explores in longer pushes.
   *
   * @default 1
   */
  readonly noiseRepeat?: number

  /**
   * The learning rate of Adam.
   *
   * @default 0.0005
   */
  readonly learningRate?: number

  /**
   * The number of env steps that each env takes between two updates.
   *
   * @default 128
   */
  readonly nsteps?: number

  /**
   * The number of passes of the policy over each rollout.
   *
   * @default 1
   */
  readonly epochs?: number

  /**
   * The number of minibatches that a rollout is shuffled into, in each pass.
   *
   * @default 8
   */
  readonly minibatches?: number

  /**
   * The λ of the returns: 0 gives one-step targets, 1 gives full returns.
   *
   * @default 0.95
   */
  readonly lambda?: number

  /**
   * The clip range: the probability ratio is clipped to 1 ± this.
   *
   * @default 0.2
   */
  readonly clip?: number

  /**
   * Normalises the advantages of each minibatch to mean 0 and standard deviation 1.
   *
   * @default true
   */
  readonly normalizeAdvantages?: boolean

  /**
   * The KL limit: an update ends at the first minibatch whose approximate KL divergence exceeds 1.5 times this.
   * null sets no limit.
   *
   * @default null
   */
  readonly targetKl?: number | null

  /**
   * The constant that keeps Adam from dividing by zero.
   *
   * @default 0.00001
   */
  readonly adamEpsilon?: number

  /**
   * The number of passes of the critic over each rollout.
   *
   * @default 9
   */
  readonly valueEpochs?: number

  /**
   * The weight, in the policy's loss, of the error of its predicted advantage.
   *
   * @default 0.25
   */
  readonly advantageCoefficient?: number
}
