/** Declares the settings that off-policy algorithms share: option interfaces for users, fields for config Schemas. */
import * as Schema from "effect/Schema"
import type { ScheduleCourse, Schedule } from "../../../tensor/graph/schedules.ts"
import {
  CourseSetting,
  firstWeightsField,
  type FirstWeightsOption,
  networkField,
  type NetworksOption,
  optimiserField,
  type OptimiserOption,
} from "../parts.ts"
import { bounded, fraction, nonNegative, positive, positiveBelow, withDefault } from "../../../base/config/fields.ts"

/** The settings of all replay learners that let the user choose the networks. */
export interface ReplayOptions extends NetworksOption, BufferOptions {}

/**
 * The settings of all replay learners, except those of their networks: how to collect transitions and when to learn
 * from them.
 */
export interface BufferOptions extends FirstWeightsOption, OptimiserOption {
  /** The discount factor of future rewards. @default 0.99 */
  readonly gamma?: number
  /** The number of transitions that the replay buffer holds. @default 1000000 */
  readonly bufferSize?: number
  /** The number of transitions that each gradient step learns from. @default 256 */
  readonly batchSize?: number
  /**
   * The number of env steps before the first update, over all envs; their actions are random. The first update also waits
   * until there are enough transitions for a batch. @default 1000
   */
  readonly learningStarts?: number
  /**
   * The number of env steps between two updates, over all envs. If a step of all envs is more than that, several updates follow
   * it: 8 envs and 1 give 8 updates. @default 1
   */
  readonly trainEvery?: number
  /** The number of gradient steps in each update; -1 is as many as `trainEvery`, so one for each env step. @default 1 */
  readonly gradientSteps?: number
  /** The number of rewards in a value target, before it continues with the next observation's value. @default 1 */
  readonly nsteps?: number
  /**
   * Hindsight experience replay, for goal envs (`GoalEnv`): `{}` draws most transitions with a goal that their episode achieved
   * in place of the desired one; null draws all as they were. @default null
   */
  readonly her?: HerOptions | null
  /** The limit of the global norm of gradients; larger ones are scaled down to it. 0 sets no limit. @default 0 */
  readonly maxGradNorm?: number
  /**
   * The course of the learning rates: `constant` keeps them, `linear` and `cosine` lower them to 0 over the run; with options
   * `{ type: "linear", warmUp: 0.1, end: 0.2 }`, as shares of the run and of the rate. In code also a function from the run's
   * progress, 0 to 1, to the factor of the learning rates. @default "constant"
   */
  readonly schedule?: ScheduleCourse | Schedule
}

/** The settings of hindsight experience replay (Andrychowicz et al. 2017, arXiv:1707.01495). */
export interface HerOptions {
  /**
   * The choice of the goal: one that is achieved later in the episode (`future`), at its end (`final`), or at any time in it
   * (`episode`). @default "future"
   */
  readonly strategy?: "future" | "final" | "episode"
  /** The number of transitions with a replaced goal for each one with its own, on average. @default 4 */
  readonly goals?: number
}

export const Her = Schema.Struct({
  strategy: withDefault(Schema.Literals(["future", "final", "episode"]), "future"),
  goals: withDefault(positiveBelow("goals"), 4),
})

export type Her = typeof Her.Type

export const replayFields = {
  gamma: withDefault(fraction, 0.99),
  bufferSize: withDefault(bounded("transitions"), 1_000_000),
  batchSize: withDefault(bounded("batchRows"), 256),
  learningStarts: withDefault(bounded("countOrNone"), 1000),
  trainEvery: withDefault(bounded("count"), 1),
  gradientSteps: withDefault(Schema.Union([bounded("rounds"), Schema.Literal(-1)]), 1),
  nsteps: withDefault(bounded("rolloutSteps"), 1),
  her: withDefault(Schema.NullOr(Her), null),
  maxGradNorm: withDefault(nonNegative, 0),
  schedule: withDefault(CourseSetting, "constant"),
  ...networkField,
  ...firstWeightsField,
  ...optimiserField,
}

/** The settings of prioritised replay (Schaul et al. 2015, arXiv:1511.05952). */
export interface PrioritisedOptions {
  /** The exponent of the priorities: 0 draws uniformly, 1 in proportion to the error. @default 0.6 */
  readonly alpha?: number
  /**
   * The exponent of the importance weights at the start; it rises to 1, a full correction of the bias, at the end of the run.
   * @default 0.4
   */
  readonly beta?: number
  /** The constant that is added to every error, so that no priority is 0. @default 0.000001 */
  readonly epsilon?: number
}

export const Prioritised = Schema.Struct({
  alpha: withDefault(fraction, 0.6),
  beta: withDefault(fraction, 0.4),
  epsilon: withDefault(positive, 1e-6),
})

export type Prioritised = typeof Prioritised.Type

/** The settings that the algorithm's own networks and update read. */
type ReplayParts = NetworksOption & OptimiserOption

/** The settings that `replayLearner` reads. The algorithm's own update reads further settings. */
export interface ReplayConfig extends Required<
  Omit<ReplayOptions, "maxGradNorm" | "schedule" | "her" | keyof ReplayParts>
> {
  /** The settings of hindsight experience replay; null, the default, draws transitions as they were. */
  readonly her?: Her | null
  /** The course of the learning rates; constant by default. */
  readonly schedule?: ScheduleCourse | Schedule
  /** The number of consecutive steps for which actions are drawn with the same noise; 1 by default. */
  readonly noiseRepeat?: number
}
