// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Vin.make`. */
export interface VinOptions {
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
   * @default 0.001
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
   * How the planner plans.
   */
  readonly planning?: {
    /**
     * Sweeps over the map: about as many as the longest way has steps.
     *
     * @default 12
     */
    readonly iterations?: number
    /**
     * Filters of the layer that makes a reward of what is seen.
     *
     * @default 32
     */
    readonly filters?: number
    /**
     * Channels of the planner's own actions.
     *
     * @default 10
     */
    readonly actions?: number
    /**
     * Which plane of the observation shows where the agent is.
     *
     * @default 2
     */
    readonly agentPlane?: number
  }
}
