/** Declares the settings that on-policy algorithms share: option interfaces for users, fields for config Schemas. */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { ConfigError } from "../../../base/config/Config.ts"
import { bounded, discount, nonNegative, withDefault } from "../../../base/config/fields.ts"
import type { ScheduleCourse, Schedule } from "../../../tensor/graph/schedules.ts"
import { CourseSetting, networkField, type NetworksOption, optimiserField, type OptimiserOption } from "../parts.ts"
import { type Scheduled, scheduled, type WithInputs, withInputs } from "../scheduled.ts"
import {
  memoryFields,
  memoryPlaceFields,
  type MemoryPlaceOptions,
  networkFields,
  type NetworkOptions,
} from "../../model/trunk.ts"

/** The settings of every algorithm that learns from rollouts, except those of its network. */
export interface RolloutOptions extends OptimiserOption {
  /**
   * The discount factor of future rewards. In self-play it is negative, because the next observation's value is the
   * opponent's: see `TicTacToe.selfPlay`. @default 0.99
   */
  readonly gamma?: number
  /** The limit of the global norm of gradients; larger ones are scaled down to it. 0 sets no limit. @default 0.5 */
  readonly maxGradNorm?: number
  /**
   * The course of the learning rate: `linear` lowers it to 0 over the run, `cosine` along half a cosine, `constant` keeps it;
   * with options `{ type: "linear", warmUp: 0.1, end: 0.2 }`, as shares of the run and of the rate. In code also a function from
   * the run's progress, 0 to 1, to the factor of the learning rate. @default "linear"
   */
  readonly schedule?: ScheduleCourse | Schedule
  /**
   * The kind of returns, for advantages and value targets: `LAMBDA` and `GAE` both are λ-returns, and `NSTEP` sets their λ
   * to 1. @default "GAE"
   */
  readonly returns?: "GAE" | "LAMBDA" | "NSTEP"
  /** The time of an update: `nstep` updates after `nsteps` steps of each env, `onestep` after every step. @default "nstep" */
  readonly trainMode?: "nstep" | "onestep"
}

/** The settings of every algorithm that learns from rollouts. */
export interface LearningOptions extends RolloutOptions, NetworkOptions {}

export const learningFields = {
  gamma: withDefault(discount, 0.99),
  maxGradNorm: withDefault(nonNegative, 0.5),
  ...optimiserField,
  schedule: withDefault(CourseSetting, "linear"),
  returns: withDefault(Schema.Literals(["GAE", "LAMBDA", "NSTEP"]), "GAE"),
  trainMode: withDefault(Schema.Literals(["nstep", "onestep"]), "nstep"),
  ...networkFields,
}

/** The settings of how an on-policy algorithm explores. */
export interface ActorOptions {
  /**
   * The weight of the policy's entropy in the loss; more keeps the policy from becoming certain too soon. It can change over the
   * run. @default 0.01
   */
  readonly entropyCoefficient?: Scheduled
  /** The number of consecutive steps whose actions are drawn with the same random numbers. @default 1 */
  readonly noiseRepeat?: number
}

/** The settings of every algorithm with an actor and a critic. */
export interface ActorCriticLearningOptions extends LearningOptions, NetworksOption, MemoryPlaceOptions, ActorOptions {
  /**
   * The weight of the critic's error in the loss. The error is half the squared error in PPO and algorithms that extend
   * it, and the whole squared error in A2C and algorithms that extend it. @default 0.5
   */
  readonly valueCoefficient?: number
}

export const actorCriticFields = {
  ...learningFields,
  ...networkField,
  ...memoryFields,
  ...memoryPlaceFields,
  entropyCoefficient: withDefault(scheduled(nonNegative), 0.01),
  valueCoefficient: withDefault(nonNegative, 0.5),
  noiseRepeat: withDefault(bounded("count"), 1),
}

interface MemorySettings extends Pick<MemoryPlaceOptions, "lstmAfter" | "criticMemory"> {
  readonly lstm: number
  readonly hidden: ReadonlyArray<number>
  readonly network?: unknown
}

/**
 * Fails if the settings of a memory contradict each other, or do not fit the layers around it. `name` is the
 * algorithm's.
 *
 * @example
 * ```ts
 * checkMemory("ppo", { hidden: [64], lstm: 32, lstmAfter: 2 })
 * // algorithm.lstm_after: expected at most 1, the number of layers in algorithm.hidden, found 2
 * ```
 */
export const checkMemory = (name: string, settings: MemorySettings): Effect.Effect<void, ConfigError> => {
  const { hidden, lstm, lstmAfter = null, criticMemory = null, network = null } = settings
  const wrong = (key: "lstmAfter" | "criticMemory", expected: string) => {
    const problem = `expected ${expected}, found ${settings[key]}`
    return Effect.fail(ConfigError.at({ source: name, prefix: ["algorithm"] }, key, problem))
  }
  if (lstm === 0 && criticMemory !== null) return wrong("criticMemory", "null, because algorithm.lstm is 0")
  if (lstmAfter === null) return Effect.void
  if (lstm === 0) return wrong("lstmAfter", "null, because algorithm.lstm is 0")
  if (network !== null) return wrong("lstmAfter", "null, because algorithm.network replaces algorithm.hidden")
  if (lstmAfter <= hidden.length) return Effect.void
  return wrong("lstmAfter", `at most ${hidden.length}, the number of layers in algorithm.hidden`)
}

interface ReturnSettings extends Required<Pick<RolloutOptions, "returns" | "trainMode">> {
  readonly nsteps: number
  readonly lambda: number
}

/**
 * Returns a config with `returns` and `trainMode` applied: `NSTEP` sets `lambda` to 1, `onestep` sets `nsteps` to 1.
 * Settings that change over the run become inputs of the graph: see `scheduledInputs` of a phase.
 *
 * @example
 * ```ts
 * resolved({ nsteps: 5, lambda: 0.95, returns: "NSTEP", trainMode: "nstep" }).lambda // 1
 * ```
 */
export const resolved = <C extends ReturnSettings>(config: C): Resolved<C> => ({
  ...withInputs(config, changing),
  lambda: config.returns === "NSTEP" ? 1 : config.lambda,
  nsteps: config.trainMode === "onestep" ? 1 : config.nsteps,
})

/** The settings of losses that can change over the run. */
const changing = ["clip", "entropyCoefficient"] as const
export type Resolved<C> = WithInputs<C, (typeof changing)[number]>
