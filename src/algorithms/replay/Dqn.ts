import { Effect, Schema } from "effect"
import { ConfigError } from "../../config/Config.ts"
import * as Fields from "../../config/fields.ts"
import * as Graph from "../../graph/ops.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/Learner.ts"
import * as Losses from "../../losses/Losses.ts"
import * as Model from "../../model/Model.ts"

const { abs, add, argMax, constant, exp, gather, huber, max, mean, mul, reshape, slice, stopGradient, sub } = Graph

/**
 * Deep Q-learning with a replay buffer (Mnih et al. 2015), and improvements that Rainbow (Hessel et al. 2018,
 * arXiv:1710.02298) combines, each with a setting: double Q-learning, dueling networks, prioritised replay, n-step targets,
 * the distribution of returns in place of their mean, and noisy layers. With `lstm` the network has a memory, which learns from
 * sequences of steps as in R2D2 (Kapturowski et al. 2019, openreview.net/forum?id=r1lyTjAqYX), in one process.
 */

// --- Config: `DqnOptions` are the settings in code; `DqnConfig` checks them and fills in the defaults ---

export interface DqnOptions extends Learner.ReplayOptions, Learner.ExplorationOptions, Model.NetworkOptions {
  /** The number of transitions that the replay buffer holds. @default 100000 */
  readonly bufferSize?: number
  /** The number of transitions that each gradient step learns from; with `lstm`, the number of sequences. @default 64 */
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
  /** The number of units of an LSTM after the hidden layers; 0 makes a network without memory. @default 0 */
  readonly lstm?: number
  /**
   * With `lstm`, the number of steps of each sequence whose actions are learned from, and through which gradients flow back; 0
   * is 16. @default 0
   */
  readonly sequence?: number
  /** With `lstm`, the number of steps before each sequence that only warm up the memory, without a gradient. @default 0 */
  readonly burnIn?: number
  /**
   * Learns values on the scale of `Losses.rescaled`, which is close to a square root (Pohlen et al. 2018), so that returns of very
   * different sizes need no clipping. @default false
   */
  readonly rescale?: boolean
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
  lstm: Fields.withDefault(Fields.intBetween(0, 65_536), 0),
  sequence: Fields.withDefault(Fields.naturalInt, 0),
  burnIn: Fields.withDefault(Fields.naturalInt, 0),
  rescale: Fields.withDefault(Schema.Boolean, false),
  adamEpsilon: Fields.withDefault(Fields.positive, 1e-8),
})
export type DqnConfig = typeof DqnConfig.Type

// --- Learner, which `make` below sets up for a task: network and replay ---

/** Makes the learner of a network of action values: values alone, of a network with a memory, or means of distributions. */
const setup = Effect.fnUntraced(function* (config: DqnConfig, task: Algorithm.Task) {
  const actions = yield* Learner.needsChoices("dqn", task)
  yield* checkMemory(config)
  const options = { ...config, observationSpace: task.observationSpace, actions }
  const { distribution } = config
  if (config.lstm > 0) {
    const network = yield* Learner.build(() => Model.recurrentQNetwork(options))
    const lengths = { length: config.sequence || defaultSequence, burnIn: config.burnIn }
    const { experience, learning } = parts(config, task, network)
    const loss = (at: SequenceInputs) => sequenceLoss({ ...config, ...lengths }, network, at)
    return yield* Learner.replayLearner(Learner.withSequences(experience, lengths), learning(loss))
  }
  if (distribution === null) {
    const network = yield* Learner.build(() => Model.qNetwork(options))
    const { experience, learning } = parts(config, task, withoutMemory(network))
    return yield* Learner.replayLearner(
      experience,
      learning((at: LossInputs) => dqnLoss(config, network, at)),
    )
  }
  const network = yield* Learner.build(() => Model.distributionalQNetwork(options, distribution))
  const { experience, learning } = parts(config, task, withoutMemory(network))
  return yield* Learner.replayLearner(
    experience,
    learning((at: LossInputs) => distributionalLoss({ ...config, distribution }, network, at)),
  )
})

/** The number of steps of a sequence if the config leaves it to the algorithm. */
const defaultSequence = 16

/** Fails if settings of a memory are set without one, or if others are set that do not work with it. */
const checkMemory = ({
  lstm,
  sequence,
  burnIn,
  distribution,
  rescale,
}: DqnConfig): Effect.Effect<void, ConfigError> => {
  const wrong = (key: string, problem: string) =>
    Effect.fail(ConfigError.at({ source: "dqn", prefix: ["algorithm"] }, key, problem))
  if (lstm === 0 && sequence > 0) return wrong("sequence", `${sequence} steps of a memory, but algorithm.lstm is 0`)
  if (lstm === 0 && burnIn > 0) return wrong("burn_in", `${burnIn} steps of a memory, but algorithm.lstm is 0`)
  if (distribution === null) return Effect.void
  if (lstm > 0) return wrong("distribution", `expected null with algorithm.lstm, found ${distribution.type}`)
  return rescale
    ? wrong("rescale", "expected false with algorithm.distribution, which learns unscaled returns")
    : Effect.void
}

/** A network of action values with which the actor acts. */
type ActingNetwork = Pick<Model.RecurrentQNetwork, "parameters" | "memorySize"> & {
  readonly evaluate: (
    ...at: Parameters<Model.RecurrentQNetwork["evaluate"]>
  ) => Partial<ReturnType<Model.RecurrentQNetwork["evaluate"]>> & { readonly values: Graph.Tensor }
}

const withoutMemory = ({ parameters, apply }: Model.QNetwork): ActingNetwork => ({
  parameters,
  memorySize: 0,
  evaluate: (weights, observations) => ({ values: apply(weights, observations) }),
})

/**
 * Makes what all networks have in common: how they act, and how they learn by a loss. The online network is the actor, which
 * acts and learns. The trainer (`train/Trainer.ts`) copies it into the target network every `updateTargetFreq` env steps.
 */
const parts = (config: DqnConfig, task: Algorithm.Task, network: ActingNetwork) => {
  const noisy = config.noisy ? Model.noisyLayers(network.parameters) : undefined
  const actor: Model.Actor = {
    parameters: noisy?.parameters ?? network.parameters,
    noiseSize: 2 + (noisy?.noiseSize ?? 0),
    // All envs act by the same draw of the weights.
    sharedNoiseSize: noisy?.noiseSize ?? 0,
    memorySize: network.memorySize,
    keeps: [],
    act: ({ weights, observations, noise, exploration, recall }) => {
      const drawn = noisy?.draw(weights, slice(noise, [0, 2], [1, noisy.noiseSize])) ?? weights
      const { values, memory } = network.evaluate(drawn, observations, recall)
      const own = slice(noise, [0, 0], [noise.shape[0], 2])
      const allowed = Model.maskOf(task.observationSpace, observations)
      return { actions: Learner.epsilonGreedy(values, own, exploration, allowed), kept: {}, memory }
    },
    greedy: ({ weights, observations, recall }) => {
      const { values, memory } = network.evaluate(weights, observations, recall)
      return { actions: argMax(values), memory }
    },
  }
  const exploration = Learner.epsilonSchedule(config)
  const experience = Learner.replayExperience({ name: "dqn", task, config, actor, exploration, networks: {} })
  const targeted = Learner.withTargets(experience, ["actor"], { copyEvery: config.updateTargetFreq })
  return {
    experience: Learner.withPriorities(targeted, config.prioritised),
    learning: <B extends Noise>(lossOf: (at: Inputs<B>) => RowErrors) => ({
      learningRates: { learningRate: config.learningRate },
      // The numbers of all rows together are the noise of an update's draws.
      noiseSize: Math.ceil((draws * (noisy?.noiseSize ?? 0)) / config.batchSize),
      update: (learning: Learning<B>) => update(config, lossOf, noisy, learning),
    }),
  }
}

// --- Targets and update ---

/** The tensors that a loss reads. */
interface Inputs<B> {
  readonly batch: B
  readonly online: Model.Weights
  /** The online weights by which double Q-learning chooses the next action: `online` with a noise of their own. */
  readonly selector?: Model.Weights
  readonly targetNetwork: Model.Weights
}
type LossInputs = Inputs<Learner.Batch<Learner.ReplayColumns>>
type SequenceInputs = Inputs<Learner.Batch<Learner.SequenceColumns>>

type Noise = Pick<Learner.Batch<Learner.ReplayColumns>, "noise">
type Learning<B> = Omit<Learner.Learning<never, "actor", "learningRate">, "batch"> & { readonly batch: B }

/** The result of a loss, with the error of each row. */
interface RowErrors extends Learner.Loss {
  readonly errors: Graph.Tensor
}

/** The number of draws of noisy weights in an update: to learn, to choose the next action, and to value it. */
const draws = 3

/** Describes one gradient step on a batch, with Adam or the config's optimiser. */
const update = <B extends Noise>(
  config: DqnConfig,
  lossOf: (at: Inputs<B>) => RowErrors,
  noisy: Model.NoisyLayers | undefined,
  { batch, networks, targets, learningRates }: Learning<B>,
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
type ValueConfig = LossConfig & Pick<DqnConfig, "rescale">

/** Returns the importance weights of prioritised replay; undefined without it. */
const importanceIn = (
  { prioritised }: LossConfig,
  batch: { readonly importance: Graph.Tensor },
): Graph.Tensor | undefined => (prioritised === null ? undefined : batch.importance)

/** Computes the target y = r + γⁿ v; with `rescale`, y = h(r + γⁿ h⁻¹(v)) for values on the scale h. */
const targetOf = ({ rescale }: ValueConfig, at: Parameters<typeof Losses.tdTarget>[0]): Graph.Tensor =>
  rescale ? Losses.rescaled(Losses.tdTarget({ ...at, v_t: Losses.unrescaled(at.v_t) })) : Losses.tdTarget(at)

/**
 * Computes the loss of DQN: L = E[w · huber(Q(s, a) − y)] with the target y = r + γⁿ Q′(s′, a′). Q′ is the target
 * network, a′ the action that the online network (if `double`) or the target network chooses, and w the importance
 * weight of prioritised replay (1 without it). The batch's `discounts` hold γⁿ, and 0 where the episode terminated; a
 * truncated episode keeps the value of its final observation. With `rescale` the values are on another scale: see `targetOf`.
 * Also returns the absolute error of each row.
 */
export const dqnLoss = (config: ValueConfig, network: Pick<Model.QNetwork, "apply">, at: LossInputs): RowErrors => {
  const { batch, online, selector = online, targetNetwork } = at
  const { observations, actions, rewards, nextObservations, discounts } = batch
  const q_t = network.apply(targetNetwork, nextObservations)
  const v_t = config.double
    ? Losses.doubleQValue({ q_t, selector_t: network.apply(selector, nextObservations) })
    : Losses.qLearningValue({ q_t })
  const targets = targetOf(config, { r_t: rewards, discount_t: discounts, v_t })
  const values = Losses.valueOfAction(network.apply(online, observations), actions)
  const errors = sub(values, targets)
  const rowLoss = huber(errors)
  return {
    loss: Losses.weightedMean(rowLoss, importanceIn(config, batch)),
    errors: abs(errors),
    metrics: { "losses/td_loss": mean(rowLoss), "losses/q_values": mean(values) },
  }
}

/** The weight of the largest error of a sequence in its priority, as in R2D2; the mean error has the rest. */
const largestShare = 0.9

/**
 * Computes the loss of `dqnLoss` for a network with a memory: L = E[w · mean_t huber(Q(s_t, a_t) − y_t)] over sequences with
 * importance weights w. Both networks read each sequence from the stored memory on; the first `burnIn` observations only warm it
 * up, without a gradient. The error of a sequence is 0.9 max_t |δ_t| + 0.1 mean_t |δ_t| with δ = Q − y.
 */
export const sequenceLoss = (
  config: ValueConfig & Learner.SequenceLengths,
  network: Pick<Model.RecurrentQNetwork, "evaluate">,
  { batch, online, selector = online, targetNetwork }: SequenceInputs,
): RowErrors => {
  const { length, burnIn } = config
  const { actions, rewards, discounts, next, valid } = batch
  const [sequences, observations] = batch.observations.shape
  const rows = sequences * length
  const learnedOn = observations - burnIn
  const valuesBy = (weights: Model.Weights) => afterBurnIn(network, weights, batch, burnIn)
  const all = valuesBy(online)
  const q_t = valuesBy(targetNetwork)
  const v_t = config.double
    ? Losses.doubleQValue({ q_t, selector_t: selector === online ? all : valuesBy(selector) })
    : Losses.qLearningValue({ q_t })
  // `next` counts within a sequence, and the rows of values lie sequence after sequence.
  const firstRows = constant(
    Int32Array.from({ length: sequences }, (_, index) => index * learnedOn),
    [sequences, 1],
  )
  const flat = (column: Graph.Tensor): Graph.Tensor => reshape(column, [rows])
  const targets = targetOf(config, {
    r_t: flat(rewards),
    discount_t: flat(discounts),
    v_t: flat(gather(v_t, add(next, firstRows))),
  })
  const [, actionCount] = all.shape
  const learned = slice(reshape(all, [sequences, learnedOn, actionCount]), [0, 0, 0], [sequences, length, actionCount])
  const values = Losses.valueOfAction(reshape(learned, [rows, actionCount]), flat(actions))
  const errors = reshape(mul(sub(values, targets), flat(valid)), [sequences, length])
  const rowLoss = huber(errors)
  const sizes = abs(errors)
  return {
    loss: Losses.weightedMean(mean(rowLoss, -1), importanceIn(config, batch)),
    errors: add(mul(max(sizes, -1), largestShare), mul(mean(sizes, -1), 1 - largestShare)),
    metrics: { "losses/td_loss": mean(rowLoss), "losses/q_values": mean(values) },
  }
}

/** Computes the values of all observations of sequences after the burn-in, of shape [sequences × observations, actions]. */
const afterBurnIn = (
  network: Pick<Model.RecurrentQNetwork, "evaluate">,
  weights: Model.Weights,
  { observations, fresh, memory }: Pick<SequenceInputs["batch"], "observations" | "fresh" | "memory">,
  burnIn: number,
): Graph.Tensor => {
  const [sequences, count, width] = observations.shape
  const evaluate = (from: number, to: number, state: Graph.Tensor) => {
    const steps = to - from
    const own = slice(observations, [0, from, 0], [sequences, steps, width])
    const begins = reshape(slice(fresh, [0, from], [sequences, steps]), [sequences * steps])
    return network.evaluate(weights, reshape(own, [sequences * steps, width]), { state, fresh: begins })
  }
  const warm = burnIn === 0 ? memory : stopGradient(evaluate(0, burnIn, memory).memory)
  return evaluate(burnIn, count, warm).values
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
    loss: Losses.weightedMean(rowLoss, importanceIn(config, batch)),
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
