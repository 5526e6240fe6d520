// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Ddqn.make`. */
export interface DdqnOptions {
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
   * The probability of a random action at the start of the run.
   *
   * @default 1
   */
  readonly epsilonStart?: number

  /**
   * The probability of a random action from `explorationFraction` of the run on.
   *
   * @default 0.05
   */
  readonly epsilonEnd?: number

  /**
   * The part of the run in which that probability falls, in a straight line.
   *
   * @default 0.2
   */
  readonly explorationFraction?: number

  /**
   * How far an update goes along its gradient.
   *
   * @default 0.001
   */
  readonly learningRate?: number

  /**
   * Env steps that each env takes between updates.
   *
   * @default 5
   */
  readonly nsteps?: number

  /**
   * 1 is the n-step return; less mixes it with shorter ones.
   *
   * @default 1
   */
  readonly lambda?: number

  /**
   * Env steps between two copies of the network into the target network; 0 never copies it.
   *
   * @default 1000
   */
  readonly updateTargetFreq?: number

  /**
   * Passes over each rollout.
   *
   * @default 1
   */
  readonly epochs?: number

  /**
   * Parts that a rollout is shuffled into, each pass.
   *
   * @default 1
   */
  readonly minibatches?: number

  /**
   * A value and advantages as two heads, joined to action values.
   *
   * @default false
   */
  readonly dueling?: boolean

  /**
   * Adam's term that keeps it from dividing by zero.
   *
   * @default 1e-8
   */
  readonly adamEpsilon?: number
}
