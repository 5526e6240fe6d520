// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Dqn.make`. */
export interface DqnOptions {
  /**
   * The discount of what comes later.
   *
   * @default 0.99
   */
  readonly gamma?: number

  /**
   * Transitions that are remembered.
   *
   * @default 100000
   */
  readonly bufferSize?: number

  /**
   * Transitions that an update learns from.
   *
   * @default 64
   */
  readonly batchSize?: number

  /**
   * Env steps before the first update; they are played at random.
   *
   * @default 1000
   */
  readonly learningStarts?: number

  /**
   * Env steps between updates, over all envs.
   *
   * @default 4
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
   * Hidden layers.
   *
   * @default [128,128]
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
   * How far an update goes along its gradient.
   *
   * @default 0.0005
   */
  readonly learningRate?: number

  /**
   * Env steps between two copies of the network into the target network; 0 never copies it.
   *
   * @default 1000
   */
  readonly updateTargetFreq?: number

  /**
   * The next action is chosen by the network and judged by the target network (van Hasselt et al. 2015).
   *
   * @default true
   */
  readonly double?: boolean

  /**
   * A value and advantages as two heads, joined to action values.
   *
   * @default false
   */
  readonly dueling?: boolean

  /**
   * `{}` draws what surprised more often; null draws uniformly.
   *
   * @default null
   */
  readonly prioritised?: {
    /**
     * 0 draws uniformly, 1 in proportion to the error.
     *
     * @default 0.6
     */
    readonly alpha?: number
    /**
     * How far the bias that this brings is made up for at first; all the way at the end of the run.
     *
     * @default 0.4
     */
    readonly beta?: number
    /**
     * Added to every error.
     *
     * @default 0.000001
     */
    readonly epsilon?: number
  } | null

  /**
   * Adam's term that keeps it from dividing by zero.
   *
   * @default 1e-8
   */
  readonly adamEpsilon?: number
}
