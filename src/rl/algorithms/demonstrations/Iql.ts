/**
 * Implicit Q-learning (Kostrikov et al. 2021, arXiv:2110.06169): learns a policy from a data set of transitions alone,
 * and can become better than the policy that produced the data. It never evaluates an action that is not in the data:
 * the value of a state is an expectile of the values of the actions that the data have there, and the policy imitates
 * the better ones of these actions.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import * as Fields from "../../../base/config/fields.ts"
import * as Space from "../../env/Space.ts"
import type * as Distributions from "../../../tensor/graph/distributions.ts"
import * as Initialisers from "../../../tensor/graph/initialisers.ts"
import * as Layers from "../../../tensor/graph/layers.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import type { ScheduleCourse, Schedule } from "../../../tensor/graph/schedules.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import { build } from "../../learner/graphs.ts"
import { onlyPlaying } from "../../learner/onlyPlaying.ts"
import {
  CourseSetting,
  learningRateSetting,
  networkField,
  type NetworksOption,
  optimiserField,
  type OptimiserOption,
} from "../../learner/parts.ts"
import type { Scheduled } from "../../learner/scheduled.ts"
import { offlineLearner } from "../../learner/replay/OfflineLearner.ts"
import type { Learning, Update } from "../../learner/replay/networks.ts"
import { gradientStep, polyak } from "../../learner/replay/steps.ts"
import type { Transitions } from "../../learner/transitions/Transitions.ts"
import * as Losses from "../../losses/Losses.ts"
import * as Model from "../../model/Model.ts"

const { clip, constant, exp, mean, minimum, mul, reshape, sub, tanh } = Graph

// --- Config: `IqlOptions` are the settings in code; `IqlConfig` checks them and fills in the defaults ---

export interface IqlOptions extends Model.NetworkOptions, NetworksOption, OptimiserOption {
  /** The activation function between layers. @default "relu" */
  readonly activation?: "tanh" | "relu"
  /** The learning rate of all networks. @default 0.0003 */
  readonly learningRate?: Scheduled
  /** The course of the learning rate over the run, as in PPO. @default "constant" */
  readonly schedule?: ScheduleCourse | Schedule
  /** The number of transitions that an update learns from. @default 256 */
  readonly batchSize?: number
  /** The discount factor of future rewards. @default 0.99 */
  readonly gamma?: number
  /** The expectile τ of the values: 0.5 is their mean, and near 1 it is the best that the data have. @default 0.7 */
  readonly expectile?: number
  /**
   * The inverse temperature β: 0 imitates all actions equally; a larger value prefers actions with a larger advantage.
   * @default 3
   */
  readonly beta?: number
  /** The largest weight of an action in the policy's loss. @default 100 */
  readonly weightLimit?: number
  /** The share by which the target critics move towards the critics in each update. @default 0.005 */
  readonly tau?: number
  /**
   * The factor of rewards; null takes 1000 divided by the difference between the best and the worst return of the data, as the
   * paper does, or 1 if all returns are equal. @default null
   */
  readonly rewardScale?: number | null
  /** The limit of the global norm of gradients; larger ones are scaled down to it. 0 sets no limit. @default 0 */
  readonly maxGradNorm?: number
}

export const IqlConfig = Schema.Struct({
  ...Model.networkFields,
  ...networkField,
  ...optimiserField,
  activation: Fields.withDefault(Schema.Literals(["tanh", "relu"]), "relu"),
  learningRate: Fields.withDefault(learningRateSetting, 3e-4),
  schedule: Fields.withDefault(CourseSetting, "constant"),
  batchSize: Fields.withDefault(Fields.bounded("batchRows"), 256),
  gamma: Fields.withDefault(Fields.fraction, 0.99),
  expectile: Fields.withDefault(Fields.fraction, 0.7),
  beta: Fields.withDefault(Fields.nonNegative, 3),
  weightLimit: Fields.withDefault(Fields.positive, 100),
  tau: Fields.withDefault(Fields.fraction, 0.005),
  rewardScale: Fields.withDefault(Schema.NullOr(Fields.positive), null),
  maxGradNorm: Fields.withDefault(Fields.nonNegative, 0),
})
export type IqlConfig = typeof IqlConfig.Type

// --- Networks ---

// The bounds of log σ of continuous actions, as in the code of the paper's authors.
const lowestLogDeviation = -5
const highestLogDeviation = 2

/** Makes the networks: an actor, two critics of observation and action, and a value of the observation. */
const networks = (config: IqlConfig, { observationSpace, actionSpace }: Algorithm.Task) => {
  const size = Model.outputsFor(actionSpace)
  const body = Model.trunk("actor", observationSpace, config, Model.networkFor(config, "actor"))
  const head = Layers.linear(`actor.${body.depth}`, body.outputs, size, Initialisers.orthogonal(0.01))
  const valueBody = Model.trunk("value", observationSpace, config, Model.networkFor(config, "critic"))
  const valueHead = Layers.linear(`value.${valueBody.depth}`, valueBody.outputs, 1, Initialisers.orthogonal(1))
  // Bounded actions are scaled to −1 … 1. The critics read choices as one-hot vectors.
  const isBounded = actionSpace._tag === "Box" && [...actionSpace.low, ...actionSpace.high].every(Number.isFinite)
  const scale = isBounded ? Model.scaledActions(actionSpace) : undefined
  const critics = Model.critics(2, observationSpace, Space.box(-1, 1, [size]), config)
  const deviation = { "actor.logStd": { shape: [size], init: Initialisers.zeros } }
  return {
    actor: { ...body.parameters, ...head.parameters, ...(actionSpace._tag === "Box" ? deviation : {}) },
    critic: critics.parameters,
    value: { ...valueBody.parameters, ...valueHead.parameters },
    /** The distribution of actions; bounded ones are on the scale of `fromEnv`. */
    policy: (weights: Model.Weights, observations: Graph.Tensor): Distributions.Distribution => {
      const outputs = head.apply(weights, body.apply(weights, observations))
      const allowed = Model.maskOf(observationSpace, observations)
      if (actionSpace._tag !== "Box") return Model.policyOver(actionSpace, outputs, { allowed })
      const logDeviation = clip(weights["actor.logStd"], lowestLogDeviation, highestLogDeviation)
      return Model.policyOver(actionSpace, isBounded ? tanh(outputs) : outputs, { logDeviation })
    },
    toEnv: (actions: Graph.Tensor) => Model.toEnvAction(actionSpace, scale?.toEnv(actions) ?? actions),
    fromEnv: (actions: Graph.Tensor) => scale?.fromEnv(actions) ?? actions,
    critics: (weights: Model.Weights, observations: Graph.Tensor, actions: Graph.Tensor) =>
      critics.apply(weights, observations, Model.asNumbers(actionSpace, scale?.fromEnv(actions) ?? actions)),
    valueOf: (weights: Model.Weights, observations: Graph.Tensor): Graph.Tensor =>
      reshape(valueHead.apply(weights, valueBody.apply(weights, observations)), [observations.shape[0]]),
  }
}
type IqlNetworks = ReturnType<typeof networks>

const actorOf = (nets: IqlNetworks, task: Algorithm.Task): Model.Actor => ({
  parameters: nets.actor,
  noiseSize: Model.noiseSizeFor(task.actionSpace),
  memorySize: 0,
  keeps: [],
  act: ({ weights, observations, noise }) => ({
    actions: nets.toEnv(nets.policy(weights, observations).sample(noise)),
    kept: {},
  }),
  greedy: ({ weights, observations }) => {
    const { mode, outputs } = nets.policy(weights, observations)
    return { actions: nets.toEnv(mode()), outputs }
  },
})

// --- Learner, which `make` below sets up for a task ---

/** Returns a function that makes the learner for a config and a task. It learns from these transitions. */
const learnFrom = (transitions: Transitions) =>
  Effect.fnUntraced(function* (config: IqlConfig, task: Algorithm.Task) {
    const nets = yield* build(() => networks(config, task))
    const actor = actorOf(nets, task)
    const experience = {
      name: "iql",
      task,
      config,
      actor,
      networks: { critic: nets.critic, value: nets.value },
      targets: ["critic"],
      transitions,
      rewardScale: config.rewardScale ?? scaleOf(transitions.returns),
      schedule: config.schedule,
    } as const
    return yield* offlineLearner(experience, {
      learningRates: { learningRate: config.learningRate },
      noiseSize: 0,
      update: (learning) => update(config, nets, learning),
    })
  })

/** Returns the factor that makes the best and the worst return differ by 1000. */
const scaleOf = (returns: ReadonlyArray<number>): number => {
  let [least, most] = [Infinity, -Infinity]
  for (const total of returns) {
    least = Math.min(least, total)
    most = Math.max(most, total)
  }
  return most > least ? 1000 / (most - least) : 1
}

// --- Targets and update ---

/** Describes a gradient step on a batch, Algorithm 1 of the paper: value, actor, critics, target critics. */
const update = (
  config: IqlConfig,
  { policy, fromEnv, critics, valueOf }: IqlNetworks,
  learning: Learning<"critic" | "value", "critic", "learningRate">,
): Update => {
  const { batch, networks, targets, learningRates } = learning
  const { observations, actions, rewards, nextObservations, discounts } = batch
  const options = {
    learningRate: learningRates.learningRate,
    maxGradNorm: config.maxGradNorm,
    optimiser: config.optimiser,
  }

  // Value: E[|τ − 1(u < 0)| u²] with u = min Q′(s, a) − V(s), the target critics Q′, and the action a of the data.
  const [first, second] = critics(targets.critic.weights, observations, actions)
  const q_t = minimum(first, second)
  const v_t = valueOf(networks.value.weights, observations)
  const valueLoss = Losses.expectileLoss({ q_t, v_t, expectile: config.expectile })
  const valueStep = gradientStep(networks.value, valueLoss, options)
  const valueWeights = networks.value.layout.tensorsOf(valueStep.next)

  // Actor: −E[min(exp(β A), limit) log π(a | s)] with A = min Q′(s, a) − V(s), and V after its own gradient step.
  const advantage_t = sub(q_t, valueOf(valueWeights, observations))
  const logProbability_t = policy(networks.actor.weights, observations).logProbability(fromEnv(actions))
  const { beta, weightLimit: limit } = config
  const actorLoss = Losses.advantageWeightedRegression({ logProbability_t, advantage_t, beta, limit })
  const actorStep = gradientStep(networks.actor, actorLoss, options)

  // Critics: E[(Q₁(s, a) − y)² + (Q₂(s, a) − y)²] with y = r + γ V(s′). `discounts` has γ, and 0 where the episode terminated.
  const v_next = valueOf(valueWeights, nextObservations)
  const target = Losses.tdTarget({ r_t: rewards, discount_t: discounts, v_t: v_next })
  const criticLoss = Losses.criticLoss({ q_tm1: critics(networks.critic.weights, observations, actions), target })
  const criticStep = gradientStep(networks.critic, criticLoss, options)

  return {
    states: {
      ...valueStep.states,
      ...actorStep.states,
      ...criticStep.states,
      ...polyak(targets.critic, criticStep.next, config.tau),
    },
    metrics: {
      "losses/value_loss": valueLoss,
      "losses/actor_loss": actorLoss,
      "losses/critic_loss": criticLoss,
      "losses/q_values": mean(q_t),
      "charts/weight": mean(minimum(exp(mul(advantage_t, beta)), constant(limit))),
    },
  }
}

/**
 * Makes IQL from transitions; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * const transitions = Transitions.record(Pendulum.env, { episodes: 50, policy: "random" })
 * Train.run({ env: Pendulum.env, algorithm: Iql.make(transitions, { expectile: 0.9 }), totalSteps: 1_000_000 })
 * ```
 */
export const make = (transitions: Transitions, options: IqlOptions = {}): Algorithm.Algorithm =>
  Algorithm.define({ name: "iql", config: IqlConfig, setup: learnFrom(transitions) }).make(options)

/** IQL as a run's saved config makes it: it can only play what the run has learned. */
export const onlyPlays = onlyPlaying("iql", IqlConfig, (config, task) => actorOf(networks(config, task), task))
