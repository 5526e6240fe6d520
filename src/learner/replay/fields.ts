import { Schema } from "effect"
import { fraction, naturalInt, nonNegative, positive, positiveInt, withDefault } from "../../config/fields.ts"

/** The settings that all replay learners share: how they collect transitions and when they learn from them. */
export const replayFields = {
  /** The discount factor of future rewards. */
  gamma: withDefault(fraction, 0.99),
  /** The number of transitions that the replay buffer holds. */
  bufferSize: withDefault(positiveInt, 1_000_000),
  /** The number of transitions that an update learns from. */
  batchSize: withDefault(positiveInt, 256),
  /** The number of env steps before the first update; their actions are random. */
  learningStarts: withDefault(naturalInt, 1000),
  /** The number of env steps between two updates, over all envs; it is rounded up to whole steps of all envs. */
  trainEvery: withDefault(positiveInt, 1),
  /** The number of gradient steps in each update. */
  gradientSteps: withDefault(positiveInt, 1),
  /** The number of rewards in a transition before its target continues with the value. */
  nsteps: withDefault(positiveInt, 1),
  /** The global norm that gradients are scaled down to; 0 does not limit them. */
  maxGradNorm: withDefault(nonNegative, 0),
}

/** Prioritised replay (Schaul et al. 2015, arXiv:1511.05952). */
export const Prioritised = Schema.Struct({
  /** The exponent of the priorities: 0 draws uniformly, 1 in proportion to the error. */
  alpha: withDefault(fraction, 0.6),
  /**
   * The exponent of the importance weights at the start; it rises to 1, a full correction of the bias, at the end of
   * the run.
   */
  beta: withDefault(fraction, 0.4),
  /** The constant that is added to every error. */
  epsilon: withDefault(positive, 1e-6),
})

export type Prioritised = typeof Prioritised.Type

/** The settings that a replay learner reads; the update of an algorithm reads others. */
export interface ReplayConfig {
  readonly gamma: number
  readonly bufferSize: number
  readonly batchSize: number
  readonly learningStarts: number
  readonly trainEvery: number
  readonly gradientSteps: number
  readonly nsteps: number
  readonly noiseRepeat?: number
}
