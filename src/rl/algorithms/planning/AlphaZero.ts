/**
 * AlphaZero (Silver et al. 2017, arXiv:1712.01815): a tree search over the env's own steps chooses each action; a
 * network gives the search the probabilities of actions and the values of states. The network learns from the results:
 * its policy from the shares of the search's visits, its value from the outcomes of the episodes. It works for one
 * player, and, with a discount of −1, for two who take turns in an env such as `TicTacToe.selfPlay`.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import * as Fields from "../../../base/config/fields.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import * as Optimisers from "../../../tensor/graph/optimisers.ts"
import type { ScheduleCourse, Schedule } from "../../../tensor/graph/schedules.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import type { Batch } from "../../learner/Batch.ts"
import { build, type Loss } from "../../learner/graphs.ts"
import {
  CourseSetting,
  learningRateSetting,
  learningRateOf,
  networkField,
  optimiserField,
  chosenOptimiser,
} from "../../learner/parts.ts"
import type { Scheduled } from "../../learner/scheduled.ts"
import { searchLearner } from "../../learner/search/SearchLearner.ts"
import { searchFields, type SearchingOptions } from "../../learner/search/fields.ts"
import type { SearchColumns } from "../../learner/search/searchRollout.ts"
import * as Losses from "../../losses/policyGradient.ts"
import * as Model from "../../model/Model.ts"

const { add, mean, mul } = Graph

// --- Config: `AlphaZeroOptions` are the settings in code; `AlphaZeroConfig` checks them and fills in the defaults ---

export interface AlphaZeroOptions extends SearchingOptions {
  /** The learning rate of Adam. @default 0.001 */
  readonly learningRate?: Scheduled
  /** The course of the learning rate over the run, as in PPO. @default "constant" */
  readonly schedule?: ScheduleCourse | Schedule
  /**
   * The discount factor of future rewards. It is negative if two players take turns, because the next state's value is the
   * opponent's: −1 in tic-tac-toe. @default 0.99
   */
  readonly gamma?: number
  /** The λ of the returns that values learn: 1 learns the outcomes of episodes, 0 the values of the searches. @default 1 */
  readonly lambda?: number
  /** The number of env steps that each env takes between two updates. @default 16 */
  readonly nsteps?: number
  /** The number of rollouts, from the last one back, that an update draws from. @default 8 */
  readonly window?: number
  /** The number of minibatches of an update. @default 16 */
  readonly updates?: number
  /** The number of env steps that a minibatch has. @default 64 */
  readonly batchSize?: number
  /** The weight of the value's squared error in the loss. @default 1 */
  readonly valueCoefficient?: number
  /** The weight decay of Adam (AdamW), if `optimiser` is null. @default 0.0001 */
  readonly weightDecay?: number
  /** The limit of the global norm of gradients; larger ones are scaled down to it. 0 sets no limit. @default 1 */
  readonly maxGradNorm?: number
  /** The choice of actions in validations: by a search without noise, or by the network alone. @default "search" */
  readonly validateBy?: "search" | "network"
}

export const AlphaZeroConfig = Schema.Struct({
  ...searchFields,
  ...Model.networkFields,
  ...networkField,
  ...optimiserField,
  learningRate: Fields.withDefault(learningRateSetting, 1e-3),
  schedule: Fields.withDefault(CourseSetting, "constant"),
  gamma: Fields.withDefault(Fields.discount, 0.99),
  lambda: Fields.withDefault(Fields.fraction, 1),
  nsteps: Fields.withDefault(Fields.bounded("rolloutSteps"), 16),
  window: Fields.withDefault(Fields.bounded("rollouts"), 8),
  updates: Fields.withDefault(Fields.bounded("rounds"), 16),
  batchSize: Fields.withDefault(Fields.bounded("batchRows"), 64),
  valueCoefficient: Fields.withDefault(Fields.nonNegative, 1),
  weightDecay: Fields.withDefault(Fields.nonNegative, 1e-4),
  maxGradNorm: Fields.withDefault(Fields.nonNegative, 1),
  validateBy: Fields.withDefault(Schema.Literals(["search", "network"]), "search"),
})
export type AlphaZeroConfig = typeof AlphaZeroConfig.Type

// --- Learner, which `make` below sets up for a task: network, search, loss ---

const setup = Effect.fnUntraced(function* (config: AlphaZeroConfig, task: Algorithm.Task) {
  const network = yield* build(() => Model.actorCritic({ ...task, ...config, lstm: 0 }))
  return yield* searchLearner({
    ...config,
    name: "alpha-zero",
    task,
    network,
    learningRate: learningRateOf(config),
    optimiser: chosenOptimiser(config, ({ size, learningRate }) =>
      Optimisers.adam({ size, learningRate, weightDecay: config.weightDecay }),
    ),
    loss: (batch, weights) => alphaZeroLoss(config, batch, network.evaluate(weights, batch.observations)),
  })
})

/** Computes L = c_v E[(z − v)²] − E[Σ π log p]: outcome z, value v, shares of visits π, and probabilities p. */
export const alphaZeroLoss = (
  config: Pick<AlphaZeroConfig, "valueCoefficient">,
  { visits, targets }: Pick<Batch<SearchColumns>, "visits" | "targets">,
  { distribution, value }: Pick<Model.Evaluation, "distribution" | "value">,
): Loss => {
  const [logProbabilities] = distribution.parameters
  const policyLoss = Losses.crossEntropy({ logProbabilities, target: visits })
  const valueLoss = Losses.valueLoss({ v_t: value, target_t: targets })
  return {
    loss: add(policyLoss, mul(valueLoss, config.valueCoefficient)),
    metrics: {
      "losses/policy_loss": policyLoss,
      "losses/value_loss": valueLoss,
      "losses/entropy": mean(distribution.entropy()),
    },
  }
}

/**
 * Makes AlphaZero; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: TicTacToe.selfPlay, algorithm: AlphaZero.make({ gamma: -1 }), totalSteps: 50_000 })
 * ```
 */
export const make: Algorithm.Make<AlphaZeroOptions> = Algorithm.define({
  name: "alpha-zero",
  config: AlphaZeroConfig,
  setup,
}).make
