// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Ddqn.make`. */
export interface DdqnOptions {
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
   * The probability of a random action at the start of the run.
   *
   * @default 1
   */
  readonly epsilonStart?: number

  /**
   * The probability of a random action after the first `explorationFraction` of the run.
   *
   * @default 0.05
   */
  readonly epsilonEnd?: number

  /**
   * The share of the run in which that probability falls linearly.
   *
   * @default 0.2
   */
  readonly explorationFraction?: number

  /**
   * The learning rate of Adam.
   *
   * @default 0.001
   */
  readonly learningRate?: number

  /**
   * The number of env steps that each env takes between two updates.
   *
   * @default 5
   */
  readonly nsteps?: number

  /**
   * The λ of the targets: 1 gives the n-step return, a smaller value mixes it with shorter ones.
   *
   * @default 1
   */
  readonly lambda?: number

  /**
   * The number of env steps between two copies of the online network into the target network; 0 never copies it.
   *
   * @default 1000
   */
  readonly updateTargetFreq?: number

  /**
   * The number of passes over each rollout.
   *
   * @default 1
   */
  readonly epochs?: number

  /**
   * The number of minibatches that a rollout is shuffled into, in each pass.
   *
   * @default 1
   */
  readonly minibatches?: number

  /**
   * Computes action values from two heads, one for the value and one for the advantages.
   *
   * @default false
   */
  readonly dueling?: boolean

  /**
   * The constant that keeps Adam from dividing by zero.
   *
   * @default 1e-8
   */
  readonly adamEpsilon?: number
}
