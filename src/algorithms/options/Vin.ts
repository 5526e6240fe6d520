// Written by `npm run settings` from the Schema and the comments on it.

import type { MemoryOptions } from "./shared.ts"

/** The settings of `Vin.make`. */
export interface VinOptions extends MemoryOptions {
  /**
   * The discount factor of future rewards. In self-play it is negative, as the next value is the opponent's: see
   * `TicTacToe.selfPlay`.
   * @default 0.99
   */
  readonly gamma?: number
  /**
   * The global norm that gradients are scaled down to; 0 does not limit them.
   * @default 0.5
   */
  readonly maxGradNorm?: number
  /**
   * The course of the learning rate: `linear` lowers it to 0 over the run, `constant` keeps it.
   * @default "linear"
   */
  readonly schedule?: "constant" | "linear"
  /**
   * The kind of value targets: `NSTEP` is `LAMBDA` with λ = 1, and `GAE` gives the same targets as `LAMBDA`.
   * @default "GAE"
   */
  readonly returns?: "GAE" | "LAMBDA" | "NSTEP"
  /**
   * The time of an update: `nstep` updates after `nsteps` steps of each env, `onestep` after every step.
   * @default "nstep"
   */
  readonly trainMode?: "nstep" | "onestep"
  /**
   * The weight of the policy's entropy in the loss; more keeps the policy from becoming certain too soon.
   * @default 0.01
   */
  readonly entropyCoefficient?: number
  /**
   * The weight of the critic's error in the loss: in PPO of half the squared error, in A2C of all of it (without
   * the ½).
   * @default 0.5
   */
  readonly valueCoefficient?: number
  /**
   * The number of steps for which actions are drawn with the same noise: more than 1 explores in longer pushes.
   * @default 1
   */
  readonly noiseRepeat?: number
  /**
   * The learning rate of Adam.
   * @default 0.001
   */
  readonly learningRate?: number
  /**
   * The number of env steps that each env takes between two updates.
   * @default 128
   */
  readonly nsteps?: number
  /**
   * The number of passes over each rollout.
   * @default 4
   */
  readonly epochs?: number
  /**
   * The number of minibatches that a rollout is shuffled into, in each pass.
   * @default 4
   */
  readonly minibatches?: number
  /**
   * The λ of the returns: 0 gives one-step targets, 1 gives full returns.
   * @default 0.95
   */
  readonly lambda?: number
  /**
   * The clip range: the probability ratio is clipped to 1 ± this.
   * @default 0.2
   */
  readonly clip?: number
  /**
   * Clips the change of the value by the same bound.
   * @default true
   */
  readonly clipValue?: boolean
  /**
   * Normalises the advantages of each minibatch to mean 0 and standard deviation 1.
   * @default true
   */
  readonly normalizeAdvantages?: boolean
  /**
   * The KL limit: an update ends at the first minibatch whose approximate KL divergence exceeds 1.5 times this.
   * null sets no limit.
   * @default null
   */
  readonly targetKl?: number | null
  /**
   * The constant that keeps Adam from dividing by zero.
   * @default 0.00001
   */
  readonly adamEpsilon?: number
  /**
   * The settings of the planner.
   */
  readonly planning?: {
    /**
     * The number of sweeps over the map, about as many as the longest path has steps.
     * @default 12
     */
    readonly iterations?: number
    /**
     * The number of filters of the layer that computes rewards from the observation.
     * @default 32
     */
    readonly filters?: number
    /**
     * The number of channels of the planner's own actions.
     * @default 10
     */
    readonly actions?: number
    /**
     * The index of the observation's plane that shows where the agent is.
     * @default 2
     */
    readonly agentPlane?: number
  }
}
