/**
 * Soft actor-critic for choices (Christodoulou 2019, arXiv:1910.07207): as in SAC, the entropy of the policy adds to its
 * return, and the smaller value of two critics counts. A critic computes the values of all actions at once, so expectations
 * over the policy are sums over actions, and nothing has to be drawn for them.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import * as Fields from "../../../base/config/fields.ts"
import * as Distributions from "../../../tensor/graph/distributions.ts"
import * as Initialisers from "../../../tensor/graph/initialisers.ts"
import * as Layers from "../../../tensor/graph/layers.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/offPolicy.ts"
import * as Losses from "../../losses/Losses.ts"
import * as Model from "../../model/Model.ts"

const { mean, minimum, mul, neg } = Graph

// --- Config: `DiscreteSacOptions` are the settings in code; `DiscreteSacConfig` checks them and fills in the defaults ---

export interface DiscreteSacOptions extends Learner.ReplayOptions, Model.NetworkOptions {
  /** The number of transitions that the replay buffer holds. @default 100000 */
  readonly bufferSize?: number
  /** The number of transitions that each gradient step learns from. @default 64 */
  readonly batchSize?: number
  /** The sizes of the hidden layers. @default [128,128] */
  readonly hidden?: ReadonlyArray<number>
  /** The activation function between layers. @default "relu" */
  readonly activation?: "tanh" | "relu"
  /** The learning rate of the actor, of the critics and of the temperature. @default 0.0005 */
  readonly learningRate?: Learner.Scheduled
  /** The share by which the target critics move towards the critics in each gradient step. @default 0.01 */
  readonly tau?: number
  /**
   * The entropy temperature, which is the weight of the policy's entropy; null learns it, and so does `auto_0.1`, which starts at
   * 0.1. @default null
   */
  readonly alpha?: number | string | null
  /** The initial value of a learned temperature. @default 1 */
  readonly alphaStart?: number
  /** The entropy at which a learned temperature keeps the policy, as a share of the entropy of random play. @default 0.89 */
  readonly targetEntropy?: number
  /**
   * A loss of your own for the critics: a function of a batch and of the critics' outputs, which include the
   * algorithm's loss. Only code can set one; null keeps the algorithm's. @default null
   */
  readonly criticLoss?: Learner.OwnReplayLoss<DiscreteCriticOutputs> | null
  /**
   * A loss of your own for the actor: a function of a batch and of the actor's outputs, which include the algorithm's
   * loss. Only code can set one; null keeps the algorithm's. @default null
   */
  readonly actorLoss?: Learner.OwnReplayLoss<DiscreteActorOutputs> | null
}

/** Each critic's values of all actions, of shape [rows, actions]. */
type BothValues = readonly [Graph.Tensor, Graph.Tensor]

/** The outputs that the user's own loss for the critics gets. */
export interface DiscreteCriticOutputs extends Learner.AlgorithmsLoss {
  /** Each critic's values of all actions at the batch's observations, of shape [rows, actions]. */
  readonly values: BothValues
  /** The target of both critics for the batch's actions, without a gradient, of shape [rows]. */
  readonly target: Graph.Tensor
  /** Computes each critic's values of all actions at other observations. */
  readonly evaluate: (observations: Graph.Tensor) => BothValues
}

/** The outputs that the user's own loss for the actor gets. */
export interface DiscreteActorOutputs extends Learner.AlgorithmsLoss {
  /** The policy at the batch's observations. */
  readonly distribution: Distributions.Categorical
  /** Each critic's values of all actions there, after the critics' own step, of shape [rows, actions]. */
  readonly values: BothValues
  /** The temperature, the weight of the entropy. */
  readonly alpha: Graph.Tensor | number
  /** Computes the policy at other observations. */
  readonly evaluate: (observations: Graph.Tensor) => Distributions.Categorical
}

export const DiscreteSacConfig = Schema.Struct({
  ...Learner.replayFields,
  ...Model.networkFields,
  hidden: Fields.withDefault(Fields.layers, [128, 128]),
  activation: Fields.withDefault(Schema.Literals(["tanh", "relu"]), "relu"),
  learningRate: Fields.withDefault(Learner.learningRateSetting, 5e-4),
  bufferSize: Fields.withDefault(Fields.bounded("transitions"), 100_000),
  batchSize: Fields.withDefault(Fields.bounded("batchRows"), 64),
  tau: Fields.withDefault(Fields.fraction, 0.01),
  ...Learner.temperatureFields,
  targetEntropy: Fields.withDefault(Fields.fraction, 0.89),
  criticLoss: Fields.withDefault(Schema.NullOr(Fields.code<Learner.OwnReplayLoss<DiscreteCriticOutputs>>()), null),
  actorLoss: Fields.withDefault(Schema.NullOr(Fields.code<Learner.OwnReplayLoss<DiscreteActorOutputs>>()), null),
})
export type DiscreteSacConfig = typeof DiscreteSacConfig.Type

// --- Networks ---

/** Makes the networks: an actor that outputs a probability for each action, and two critics with a value for each. */
const networks = (config: DiscreteSacConfig, { observationSpace }: Algorithm.Task, actions: number) => {
  const body = Model.trunk("actor", observationSpace, config, Model.networkFor(config, "actor"))
  const head = Layers.linear(`actor.${body.depth}`, body.outputs, actions, Initialisers.orthogonal(0.01))
  return {
    actions,
    parameters: { ...body.parameters, ...head.parameters },
    policy: (weights: Model.Weights, observations: Graph.Tensor): Distributions.Categorical =>
      Distributions.categorical(
        head.apply(weights, body.apply(weights, observations)),
        Model.maskOf(observationSpace, observations),
      ),
    critics: Model.twinQNetworks({ ...config, observationSpace, actions, dueling: false }),
  }
}
type DiscreteSacNetworks = ReturnType<typeof networks>

// --- Learner, which `make` below sets up for a task: acting and replay ---

const setup = Effect.fnUntraced(function* (config: DiscreteSacConfig, task: Algorithm.Task) {
  const actions = yield* Learner.needsChoices("discrete-sac", task)
  yield* Learner.checkTemperature("discrete-sac", config)
  const nets = yield* Learner.build(() => networks(config, task, actions))
  const actor: Model.Actor = {
    parameters: nets.parameters,
    dense: Model.denseLayers("actor", task.observationSpace, config),
    noiseSize: 1,
    memorySize: 0,
    keeps: [],
    act: ({ weights, observations, noise }) => ({
      actions: nets.policy(weights, observations).sample(noise),
      kept: {},
    }),
    greedy: ({ weights, observations }) => {
      const { mode, outputs } = nets.policy(weights, observations)
      return { actions: mode(), outputs }
    },
  }
  const experience = Learner.replayExperience({
    name: "discrete-sac",
    task,
    config,
    actor,
    networks: { critic: nets.critics.parameters },
  })
  return yield* Learner.replayLearner(Learner.withTargets(experience, ["critic"]), {
    learningRates: { learningRate: config.learningRate },
    noiseSize: 0,
    update: (learning) => update(config, nets, learning),
  })
})

// --- Targets and update ---

/** Describes a gradient step on a batch, Algorithm 1 of the paper: critics, actor, temperature, target critics. */
const update = (
  config: DiscreteSacConfig,
  { actions: count, policy, critics }: DiscreteSacNetworks,
  learning: Learner.Learning<"critic", "critic", "learningRate">,
): Learner.Update => {
  const { batch, networks, targets } = learning
  const { observations, actions, rewards, nextObservations, discounts } = batch
  return Learner.softUpdate(learning, config, {
    // Keeps the policy's entropy near a share of log n, the entropy of random play.
    targetEntropy: config.targetEntropy * Math.log(count),

    // Target: y = r + γ Σ π(a | s′) (min Q′(s′, a) − α log π(a | s′)), with the target critics Q′. `discounts` has γ, and 0
    // where the episode terminated; truncated episodes keep the value of the final observation.
    // Critics: ½ E[(Q₁(s, a) − y)² + (Q₂(s, a) − y)²].
    critic: (alpha) => {
      const [first, second] = critics.apply(targets.critic.weights, nextObservations)
      const next = policy(networks.actor.weights, nextObservations)
      const v_t = Losses.softValue({ q_t: minimum(first, second), logProbabilities_t: next.logProbabilities, alpha })
      const target = Losses.tdTarget({ r_t: rewards, discount_t: discounts, v_t })
      const values = critics.apply(networks.critic.weights, observations)
      const q_tm1 = [Losses.valueOfAction(values[0], actions), Losses.valueOfAction(values[1], actions)] as const
      const loss = mul(Losses.criticLoss({ q_tm1, target }), 0.5)
      return Learner.chosenLoss("critic_loss", config.criticLoss, batch, {
        loss,
        metrics: { "losses/critic_loss": loss, "losses/q_values": mean(q_tm1[0]) },
        values,
        target,
        evaluate: (at) => critics.apply(networks.critic.weights, at),
      })
    },

    // Actor: E[Σ π(a | s) (α log π(a | s) − min Q(s, a))], with the critics after their own gradient step.
    actor: (alpha, criticWeights) => {
      const distribution = policy(networks.actor.weights, observations)
      const values = critics.apply(criticWeights, observations)
      const { logProbabilities: logProbabilities_t } = distribution
      const loss = neg(mean(Losses.softValue({ q_t: minimum(...values), logProbabilities_t, alpha })))
      const chosen = Learner.chosenLoss("actor_loss", config.actorLoss, batch, {
        loss,
        metrics: { "losses/actor_loss": loss },
        distribution,
        values,
        alpha,
        evaluate: (at) => policy(networks.actor.weights, at),
      })
      return { ...chosen, logProbability: neg(distribution.entropy()) }
    },
  })
}

/**
 * Makes SAC for choices; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: Acrobot.env, numEnvs: 4, algorithm: DiscreteSac.make({ tau: 0.005 }), totalSteps: 100_000 })
 * ```
 */
export const make: Algorithm.Make<DiscreteSacOptions> = Algorithm.define({
  name: "discrete-sac",
  config: DiscreteSacConfig,
  setup,
}).make
