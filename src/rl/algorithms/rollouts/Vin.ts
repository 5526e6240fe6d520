/**
 * A value-iteration network (Tamar et al. 2016, arXiv:1602.02867), called planner here, that learns by PPO. It is for
 * envs whose observations are maps of shape [planes, height, width], through which the agent has to find a path.
 * Behaviour cloning can train such a network, too: `Bc.make(demonstrations, { planning: {} })`.
 */
import * as Schema from "effect/Schema"
import * as Fields from "../../../base/config/fields.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/onPolicy.ts"
import * as Model from "../../model/valueIteration.ts"
import { type ClippingOptions, ppoFields, ppoLearner } from "./Ppo.ts"

// --- Config: the settings of PPO, except those of the hidden layers, which the planner replaces ---

export interface VinOptions extends ClippingOptions {
  /** The weight of the critic's error in the loss. The error is half the squared error. @default 0.5 */
  readonly valueCoefficient?: number
  /** The learning rate of Adam. @default 0.001 */
  readonly learningRate?: Learner.Scheduled
  /**
   * Uses the larger of two squared errors of the critic: of its value, and of this value clipped to ± `clip` around its
   * value in the rollout; false uses only the first. @default true
   */
  readonly clipValue?: boolean
  /**
   * A loss of your own in place of PPO's: a function of a minibatch and of the network's outputs, which include PPO's
   * loss. Only code can set one; null keeps PPO's. @default null
   */
  readonly loss?: Learner.OwnLoss | null
  /** The settings of the planner. */
  readonly planning?: Model.PlannerOptions
}

const {
  hidden: _hidden,
  activation: _activation,
  convolutions: _convolutions,
  network: _network,
  lstmAfter: _lstmAfter,
  criticMemory: _criticMemory,
  ...fields
} = ppoFields
export const VinConfig = Schema.Struct({
  ...fields,
  planning: Fields.withDefault(Model.Planning, {}),
  learningRate: Fields.withDefault(Learner.learningRateSetting, 1e-3),
})
export type VinConfig = typeof VinConfig.Type

// --- Network: the planner alone, without layers after it. Rollout, returns and update as in PPO ---

const noTrunk = {
  hidden: [],
  activation: "relu",
  convolutions: null,
  network: null,
  lstmAfter: null,
  criticMemory: null,
} as const

/**
 * Makes PPO on a value-iteration network; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: GridWorld.env, numEnvs: 16, algorithm: Vin.make({ planning: { iterations: 20 } }), totalSteps: 500_000 })
 * ```
 */
export const make: Algorithm.Make<VinOptions> = Algorithm.define({
  name: "vin",
  config: VinConfig,
  setup: (config, task) =>
    ppoLearner("vin", { ...config, ...noTrunk, planner: Model.plannerOf(config.planning) }, task),
}).make
