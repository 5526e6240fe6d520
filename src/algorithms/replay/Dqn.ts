import { Effect, Schema } from "effect"
import * as Fields from "../../config/fields.ts"
import * as Graph from "../../graph/ops.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/Learner.ts"
import * as Losses from "../../losses/Losses.ts"
import * as Model from "../../model/Model.ts"

const { abs, argMax, exp, huber, mean, reshape, slice, sub } = Graph

/**
 * Deep Q-learning with a replay buffer (Mnih et al. 2015), and improvements that Rainbow (Hessel et al. 2018,
 * arXiv:1710.02298) combines, each with a setting: double Q-learning, dueling networks, prioritised replay, n-step targets,
 * the distribution of returns in place of their mean, and noisy layers.
 */

// --- Config: `DqnOptions` are the settings in code; `DqnConfig` checks them and fills in the defaults ---

export interface DqnOptions extends Learner.ReplayOptions, Learner.ExplorationOptions, Model.NetworkOptions {
  /** The number of transitions that the replay buffer holds. @default 100000 */
  readonly bufferSize?: number
  /** The number of transitions that each gradient step learns from. @default 64 */
  readonly batchSize?: number
  /** The number of env steps between two updates, over all envs. @default 4 */
  readonly trainEvery?: number
  /** The sizes of the hidden layers. @default [128,128] */
  readonly hidden?: ReadonlyArray<number>
  /** The activation function between layers. @default "relu" */
  readonly activation?: "tanh" | "relu"
  /** The learning rate. @default 0.0005 */
  readonly learningRate?: number
  /**
   * The number of env steps between two copies of the online network into the target network; 0 never copies it. @default 1000
   */
  readonly updateTargetFreq?: number
  /**
   * In targets, the online network chooses the next action, and the target network values it (van Hasselt et al. 2015).
   * @default true
   */
  readonly double?: boolean
  /** Computes action values from two heads, one for the value and one for the advantages. @default false */
  readonly dueling?: boolean
  /** Prioritised replay: `{}` draws transitions with larger errors more often, null draws uniformly. @default null */
  readonly prioritised?: Learner.PrioritisedOptions | null
  /**
   * Learns the distribution of the return in place of its mean: `{ type: "quantiles" }` as in QR-DQN, with `count` equally
   * probable returns; `{ type: "categories", min, max }` as in C51, with the probabilities of `count` returns from `min` to `max`.
   * null learns the mean. @default null
   */
  readonly distribution?: Model.QuantilesOptions | Model.CategoriesOptions | null
  /**
   * Adds learned noise to the weights of the dense layers (noisy nets, Fortunato et al. 2017), so that the network explores by
   * itself: `epsilonStart` and `epsilonEnd` can then be 0. Validations and exports use the weights without noise.
   * @default false
   */
  readonly noisy?: boolean
  /** The constant that keeps Adam from dividing by zero. @default 1e-8 */
  readonly adamEpsilon?: number
}

export const DqnConfig = Schema.Struct({
  ...Learner.replayFields,
  ...Learner.explorationFields,
  ...Model.networkFields,
  hidden: Fields.withDefault(Fields.layers, [128, 128]),
  activation: Fields.withDefault(Schema.Literals(["tanh", "relu"]), "relu"),
  learningRate: Fields.withDefault(Fields.positive, 5e-4),
  bufferSize: Fields.withDefault(Fields.positiveInt, 100_000),
  batchSize: Fields.withDefault(Fields.positiveInt, 64),
  trainEvery: Fields.withDefault(Fields.positiveInt, 4),
  updateTargetFreq: Fields.withDefault(Fields.naturalInt, 1000),
  double: Fields.withDefault(Schema.Boolean, true),
  dueling: Fields.withDefault(Schema.Boolean, false),
  prioritised: Fields.withDefault(Schema.NullOr(Learner.Prioritised), null),
  distribution: Fields.withDefault(Schema.NullOr(Model.ValueDistribution), null),
  noisy: Fields.withDefault(Schema.Boolean, false),
  adamEpsilon: Fields.withDefault(Fields.positive, 1e-8),
})
export type DqnConfig = typeof DqnConfig.Type

// --- Learner, which `make` below sets up for a task: network and replay ---

/** Returns the network of action values and its loss: values alone, or distributions whose means are the values. */
const learned = (config: DqnConfig, task: Algorithm.Task, actions: number) => {
  const options = { ...config, observationSpace: task.observationSpace, actions }
  const { distribution } = config
  if (distribution === null) {
    const network = Model.qNetwork(options)
    return { network, lossOf: (at: LossInputs) => dqnLoss(config, network, at) }
  }
  const network = Model.distributionalQNetwork(options, distribution)
  return { network, lossOf: (at: LossInputs) => distributionalLoss({ ...config, distribution }, network, at) }
}

/**
 * Makes the learner. The online network is the actor, which acts and learns. The trainer (`train/Trainer.ts`) copies it into
 * the target network every `updateTargetFreq` env steps.
 */
const setup = Effect.fnUntraced(function* (config: DqnConfig, task: Algorithm.Task) {
  const actions = yield* Learner.needsChoices("dqn", task)
  const { network, lossOf } = yield* Learner.build(() => learned(config, task, actions))
  const noisy = config.noisy ? Model.noisyLayers(network.parameters) : undefined
  const actor: Model.Actor = {
    parameters: noisy?.parameters ?? network.parameters,
    noiseSize: 2 + (noisy?.noiseSize ?? 0),
    // All envs act by the same draw of the weights.
    sharedNoiseSize: noisy?.noiseSize ?? 0,
    memorySize: 0,
    keeps: [],
    act: ({ weights, observations, noise, exploration }) => ({
      actions: Learner.epsilonGreedy(
        network.apply(noisy?.draw(weights, slice(noise, [0, 2], [1, noisy.noiseSize])) ?? weights, observations),
        slice(noise, [0, 0], [noise.shape[0], 2]),
        exploration,
        Model.maskOf(task.observationSpace, observations),
      ),
      kept: {},
    }),
    greedy: ({ weights, observations }) => ({ actions: argMax(network.apply(weights, observations)) }),
  }
  const exploration = Learner.epsilonSchedule(config)
  const experience = Learner.replayExperience({ name: "dqn", task, config, actor, exploration, networks: {} })
  const targeted = Learner.withTargets(experience, ["actor"], { copyEvery: config.updateTargetFreq })
  return yield* Learner.replayLearner(Learner.withPriorities(targeted, config.prioritised), {
    learningRates: { learningRate: config.learningRate },
    // The numbers of all rows together are the noise of an update's draws.
    noiseSize: Math.ceil((draws * (noisy?.noiseSize ?? 0)) / config.batchSize),
    update: (learning) => update(config, lossOf, noisy, learning),
  })
})

// --- Targets and update ---

/** The tensors that a loss reads. */
interface LossInputs {
  readonly batch: Learner.Batch<Learner.ReplayColumns>
  readonly online: Model.Weights
  /** The online weights by which double Q-learning chooses the next action: `online` with a noise of their own. */
  readonly selector?: Model.Weights
  readonly targetNetwork: Model.Weights
}

/** The result of a loss, with the error of each row. */
interface RowErrors extends Learner.Loss {
  readonly errors: Graph.Tensor
}

/** The number of draws of noisy weights in an update: to learn, to choose the next action, and to value it. */
const draws = 3

/** Describes one gradient step on a batch, with Adam or the config's optimiser. */
const update = (
  config: DqnConfig,
  lossOf: (at: LossInputs) => RowErrors,
  noisy: Model.NoisyLayers | undefined,
  { batch, networks, targets, learningRates }: Learner.Learning<never, "actor", "learningRate">,
): Learner.Update => {
  const [online, selector, targetNetwork] = [networks.actor, networks.actor, targets.actor].map(
    ({ weights }, index) => {
      if (noisy === undefined) return weights
      const numbers = reshape(batch.noise, [1, -1])
      return noisy.draw(weights, slice(numbers, [0, index * noisy.noiseSize], [1, noisy.noiseSize]))
    },
  )
  const { loss, errors, metrics } = lossOf({ batch, online, selector, targetNetwork })
  const step = Learner.gradientStep(networks.actor, loss, {
    learningRate: learningRates.learningRate,
    epsilon: config.adamEpsilon,
    maxGradNorm: config.maxGradNorm,
    optimiser: config.optimiser,
  })
  return { states: step.states, metrics, errors }
}

/** The settings that the losses read. */
type LossConfig = Pick<DqnConfig, "double" | "prioritised">

/** Returns the importance weights of prioritised replay; undefined without it. */
const importanceIn = ({ prioritised }: LossConfig, { batch }: LossInputs): Graph.Tensor | undefined =>
  prioritised === null ? undefined : batch.importance

/**
 * Computes the loss of DQN: L = E[w · huber(Q(s, a) − y)] with the target y = r + γⁿ Q′(s′, a′). Q′ is the target
 * network, a′ the action that the online network (if `double`) or the target network chooses, and w the importance
 * weight of prioritised replay (1 without it). The batch's `discounts` hold γⁿ, and 0 where the episode terminated; a
 * truncated episode keeps the value of its final observation. Also returns the absolute error of each row.
 */
export const dqnLoss = (config: LossConfig, network: Pick<Model.QNetwork, "apply">, at: LossInputs): RowErrors => {
  const { batch, online, selector = online, targetNetwork } = at
  const { observations, actions, rewards, nextObservations, discounts } = batch
  const q_t = network.apply(targetNetwork, nextObservations)
  const v_t = config.double
    ? Losses.doubleQValue({ q_t, selector_t: network.apply(selector, nextObservations) })
    : Losses.qLearningValue({ q_t })
  const targets = Losses.tdTarget({ r_t: rewards, discount_t: discounts, v_t })
  const values = Losses.valueOfAction(network.apply(online, observations), actions)
  const errors = sub(values, targets)
  const rowLoss = huber(errors)
  return {
    loss: Losses.weightedMean(rowLoss, importanceIn(config, at)),
    errors: abs(errors),
    metrics: { "losses/td_loss": mean(rowLoss), "losses/q_values": mean(values) },
  }
}

/**
 * Computes the loss of distributions: L = E[w · D(Z(s, a), r + γⁿ Z′(s′, a′))]. Z and Z′ are the distributions by the online
 * and the target network, and a′ is chosen by the means as in `dqnLoss`. D is the loss of quantile regression (QR-DQN, Dabney
 * et al. 2017, arXiv:1710.10044), or the divergence from the target that is projected on the categories (C51, Bellemare et
 * al. 2017, arXiv:1707.06887). The loss of each row is also its error, from which its priority follows, as in Rainbow.
 */
export const distributionalLoss = (
  config: LossConfig & { readonly distribution: Model.ValueDistribution },
  network: Pick<Model.DistributionalQNetwork, "apply" | "distributions" | "valuesOf">,
  at: LossInputs,
): RowErrors => {
  const { batch, online, selector = online, targetNetwork } = at
  const { observations, actions, rewards, nextObservations, discounts } = batch
  const { distribution } = config
  const all_t = network.distributions(targetNetwork, nextObservations)
  const selector_t = config.double
    ? network.apply(selector, nextObservations)
    : network.valuesOf(all_t, nextObservations)
  const best_t = Losses.distributionOfBest(all_t, selector_t)
  const taken_tm1 = Losses.distributionOfAction(network.distributions(online, observations), actions)
  const [r_t, discount_t] = [rewards, discounts]
  const rowLoss =
    distribution.type === "quantiles"
      ? Losses.quantileLoss({
          quantiles_tm1: taken_tm1,
          target: Losses.quantileTarget({ r_t, discount_t, quantiles_t: best_t }),
        })
      : Losses.categoricalDivergence({
          logProbabilities_tm1: taken_tm1,
          target: Losses.categoricalTarget({ r_t, discount_t, probabilities_t: exp(best_t), categories: distribution }),
        })
  const values = Model.expectedReturn(distribution, taken_tm1)
  return {
    loss: Losses.weightedMean(rowLoss, importanceIn(config, at)),
    errors: rowLoss,
    metrics: { "losses/td_loss": mean(rowLoss), "losses/q_values": mean(values) },
  }
}

/**
 * Makes DQN; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * const distribution = { type: "categories", min: -100, max: 0 } as const
 * const rainbow = Dqn.make({ dueling: true, prioritised: {}, nsteps: 3, distribution, noisy: true })
 * Train.run({ env: Acrobot.env, numEnvs: 4, algorithm: rainbow, totalSteps: 100_000 })
 * ```
 */
export const make: Algorithm.Make<DqnOptions> = Algorithm.define({ name: "dqn", config: DqnConfig, setup }).make
