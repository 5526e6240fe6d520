// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Randal.make`. */
export interface RandalOptions {
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
   * Hidden layers.
   *
   * @default [128]
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
   * @default 0.00025
   */
  readonly learningRate?: number

  /**
   * Env steps that each env takes between updates.
   *
   * @default 128
   */
  readonly nsteps?: number

  /**
   * Passes over each rollout.
   *
   * @default 4
   */
  readonly epochs?: number

  /**
   * Parts that a rollout is shuffled into, each pass.
   *
   * @default 4
   */
  readonly minibatches?: number

  /**
   * Between one-step targets (0) and whole returns (1).
   *
   * @default 0.95
   */
  readonly lambda?: number

  /**
   * The probability ratio is clipped to 1 ± this.
   *
   * @default 0.2
   */
  readonly clip?: number

  /**
   * Clip the value's change by the same bound.
   *
   * @default true
   */
  readonly clipValue?: boolean

  /**
   * Advantages to mean 0 and deviation 1, minibatch by minibatch.
   *
   * @default true
   */
  readonly normalizeAdvantages?: boolean

  /**
   * Ends an update at the first minibatch whose approximate KL divergence exceeds 1.5 times this.
   *
   * @default null
   */
  readonly targetKl?: number | null

  /**
   * Adam's term that keeps it from dividing by zero.
   *
   * @default 0.00001
   */
  readonly adamEpsilon?: number

  /**
   * The discount of the bonus.
   *
   * @default 0.99
   */
  readonly gammaIntrinsic?: number

  /**
   * How much the env's own advantages count.
   *
   * @default 2
   */
  readonly extrinsicCoefficient?: number

  /**
   * How much the advantages of the bonus count.
   *
   * @default 1
   */
  readonly intrinsicCoefficient?: number

  /**
   * Whether the bonus ends with the episode, as the env's reward does.
   *
   * @default false
   */
  readonly episodic?: boolean

  /**
   * Steps of random play in each env, before the first rollout, that observations are normalised by.
   *
   * @default 600
   */
  readonly initObsSteps?: number

  /**
   * The share of rows that the predictor learns from; null is 32 over the number of envs, at most 1.
   *
   * @default null
   */
  readonly predictionShare?: number | null

  /**
   * How fast the predictor learns, as a share of the learning rate: what it knows too soon was never worth a
   * visit.
   *
   * @default 0.1
   */
  readonly predictionPace?: number

  /**
   * Numbers that are to be predicted of an observation.
   *
   * @default 64
   */
  readonly predictionSize?: number

  /**
   * Steps of each env that are remembered.
   *
   * @default 2000
   */
  readonly replaySize?: number

  /**
   * Steps of a replayed sequence; as many sequences as there are envs are replayed each update.
   *
   * @default 20
   */
  readonly replaySteps?: number

  /**
   * Width and height of a cell whose change is to be controlled.
   *
   * @default 4
   */
  readonly cell?: number

  /**
   * What the values of changing pixels count.
   *
   * @default 0.05
   */
  readonly pixelControlCoefficient?: number

  /**
   * The discount of those values.
   *
   * @default 0.9
   */
  readonly pixelControlGamma?: number

  /**
   * What foreseeing the sign of the next reward counts.
   *
   * @default 1
   */
  readonly rewardPredictionCoefficient?: number

  /**
   * What the value of replayed sequences counts in the loss.
   *
   * @default 0.5
   */
  readonly valueReplayCoefficient?: number
}
