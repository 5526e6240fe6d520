// Written by `npm run settings` from the Schema and the comments on it.

/** Settings that several algorithms share: `networkFields`. */
export interface NetworkOptions {
  /**
   * The sizes of the hidden layers. For images, these come after the convolutions.
   * @default [64,64]
   */
  readonly hidden?: ReadonlyArray<number>
  /**
   * The activation function between layers, for vectors; networks over images always use rectifiers.
   * @default "tanh"
   */
  readonly activation?: "tanh" | "relu"
  /**
   * The convolutions for image observations [channels, height, width]; null chooses them by the image's size.
   * @default null
   */
  readonly convolutions?: ReadonlyArray<{
    readonly filters: number
    readonly kernel: number
    readonly stride: number
  }> | null
}

/** Settings that several algorithms share: `learningFields`. */
export interface LearningOptions extends NetworkOptions {
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
}

/** Settings that several algorithms share: `memoryFields`. */
export interface MemoryOptions {
  /**
   * The number of units of an LSTM after the hidden layers; 0 makes a network without memory.
   * @default 0
   */
  readonly lstm?: number
  /**
   * The number of steps that gradients flow back through the memory; it must divide `nsteps`. 0 is the whole
   * rollout.
   * @default 0
   */
  readonly sequence?: number
}

/** Settings that several algorithms share: `actorCriticFields`. */
export interface ActorCriticOptions extends LearningOptions, MemoryOptions {
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
}

/** Settings that several algorithms share: `explorationFields`. */
export interface ExplorationOptions {
  /**
   * The probability of a random action at the start of the run.
   * @default 1
   */
  readonly epsilonStart?: number
  /**
   * The probability of a random action after the first `explorationFraction` of the run.
   * @default 0.05
   */
  readonly epsilonEnd?: number
  /**
   * The share of the run in which that probability falls linearly.
   * @default 0.2
   */
  readonly explorationFraction?: number
}

/** Settings that several algorithms share: `replayFields`. */
export interface ReplayOptions {
  /**
   * The discount factor of future rewards.
   * @default 0.99
   */
  readonly gamma?: number
  /**
   * The number of transitions that the replay buffer holds.
   * @default 1000000
   */
  readonly bufferSize?: number
  /**
   * The number of transitions that an update learns from.
   * @default 256
   */
  readonly batchSize?: number
  /**
   * The number of env steps before the first update; their actions are random.
   * @default 1000
   */
  readonly learningStarts?: number
  /**
   * The number of env steps between two updates, over all envs; it is rounded up to whole steps of all envs.
   * @default 1
   */
  readonly trainEvery?: number
  /**
   * The number of gradient steps in each update.
   * @default 1
   */
  readonly gradientSteps?: number
  /**
   * The number of rewards in a transition before its target continues with the value.
   * @default 1
   */
  readonly nsteps?: number
  /**
   * The global norm that gradients are scaled down to; 0 does not limit them.
   * @default 0
   */
  readonly maxGradNorm?: number
}

/** Settings that several algorithms share: `auxiliaryFields`. */
export interface AuxiliaryOptions {
  /**
   * The number of steps of each env that are kept for replay.
   * @default 2000
   */
  readonly replaySize?: number
  /**
   * The number of steps of a replayed sequence; each update replays as many sequences as there are envs.
   * @default 20
   */
  readonly replaySteps?: number
  /**
   * The width and height of a cell of the image whose change is to be controlled.
   * @default 4
   */
  readonly cell?: number
  /**
   * The weight of the loss of pixel control, the values of changing cells.
   * @default 0.05
   */
  readonly pixelControlCoefficient?: number
  /**
   * The discount factor of pixel control.
   * @default 0.9
   */
  readonly pixelControlGamma?: number
  /**
   * The weight of the loss of predicting the sign of the next reward.
   * @default 1
   */
  readonly rewardPredictionCoefficient?: number
  /**
   * The weight of the value loss of replayed sequences.
   * @default 0.5
   */
  readonly valueReplayCoefficient?: number
}

/** Settings that several algorithms share: `planningFields`. */
export interface PlanningOptions {
  /**
   * The settings of a planner below the heads, for maps as images: `{}` takes its defaults; null uses no planner.
   * @default null
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
  } | null
}
