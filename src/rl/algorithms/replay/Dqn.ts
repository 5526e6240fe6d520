/**
 * Deep Q-learning with a replay buffer (Mnih et al. 2015), and the improvements that Rainbow (Hessel et al. 2018,
 * arXiv:1710.02298) combines, each of which is a setting: double Q-learning, dueling networks, prioritised replay,
 * n-step targets, the distribution of returns in place of their mean, and noisy layers. With `lstm` the network has a
 * memory, which learns from sequences of steps as in R2D2 (Kapturowski et al. 2019,
 * openreview.net/forum?id=r1lyTjAqYX), in one process. The losses, with their targets, are in `rl/losses/dqnLosses.ts`.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { ConfigError } from "../../../base/config/Config.ts"
import * as Fields from "../../../base/config/fields.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/offPolicy.ts"
import * as Losses from "../../losses/dqnLosses.ts"
import * as Model from "../../model/Model.ts"

const { argMax, reshape, slice } = Graph

// --- Config: `DqnOptions` are the settings in code; `DqnConfig` checks them and fills in the defaults ---

export interface DqnOptions extends Learner.ReplayOptions, Learner.ExplorationOptions, Model.NetworkOptions {
  /** The number of transitions that the replay buffer holds. @default 100000 */
  readonly bufferSize?: number
  /** The number of transitions that each gradient step learns from; with `lstm`, the number of sequences. @default 64 */
  readonly batchSize?: number
  /**
   * The number of env steps between two updates, over all envs. If a step of all envs is more than that, several updates follow
   * it: 8 envs and 4 give 2 updates. @default 4
   */
  readonly trainEvery?: number
  /** The sizes of the hidden layers. @default [128,128] */
  readonly hidden?: ReadonlyArray<number>
  /** The activation function between layers. @default "relu" */
  readonly activation?: "tanh" | "relu"
  /** The learning rate. @default 0.0005 */
  readonly learningRate?: Learner.Scheduled
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
  /**
   * A loss of your own in place of DQN's: a function of a batch and of the network's outputs, which include DQN's loss.
   * Only code can set one, and it does not work with `lstm`; null keeps DQN's. @default null
   */
  readonly loss?: DqnOwnLoss | null
  /** The constant that keeps Adam from dividing by zero. @default 1e-8 */
  readonly adamEpsilon?: number
}

/** A loss of the user's own in place of DQN's. */
export type DqnOwnLoss = Learner.OwnReplayLoss<DqnLossOutputs>

/** The outputs that a loss of the user's own gets: those of the online network, with DQN's loss. */
export interface DqnLossOutputs extends Learner.AlgorithmsLoss, Losses.ActionValues {
  /** Evaluates the online network, which learns, on other observations. */
  readonly evaluate: (observations: Graph.Tensor) => Losses.ActionValues
  /** Evaluates the target network on observations, such as those after the batch's transitions. */
  readonly evaluateTarget: (observations: Graph.Tensor) => Losses.ActionValues
}

export const DqnConfig = Schema.Struct({
  ...Learner.replayFields,
  ...Learner.explorationFields,
  ...Model.networkFields,
  hidden: Fields.withDefault(Fields.layers, [128, 128]),
  activation: Fields.withDefault(Schema.Literals(["tanh", "relu"]), "relu"),
  learningRate: Fields.withDefault(Learner.learningRateSetting, 5e-4),
  bufferSize: Fields.withDefault(Fields.bounded("transitions"), 100_000),
  batchSize: Fields.withDefault(Fields.bounded("batchRows"), 64),
  trainEvery: Fields.withDefault(Fields.bounded("count"), 4),
  updateTargetFreq: Fields.withDefault(Fields.bounded("countOrNone"), 1000),
  double: Fields.withDefault(Schema.Boolean, true),
  dueling: Fields.withDefault(Schema.Boolean, false),
  prioritised: Fields.withDefault(Schema.NullOr(Learner.Prioritised), null),
  distribution: Fields.withDefault(Schema.NullOr(Model.ValueDistribution), null),
  noisy: Fields.withDefault(Schema.Boolean, false),
  lstm: Fields.withDefault(Fields.bounded("optionalUnits"), 0),
  sequence: Fields.withDefault(Fields.bounded("unrolled"), 0),
  burnIn: Fields.withDefault(Fields.bounded("unrolled"), 0),
  rescale: Fields.withDefault(Schema.Boolean, false),
  loss: Fields.withDefault(Schema.NullOr(Fields.code<DqnOwnLoss>()), null),
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
    const loss = (at: DqnSequences) => Losses.sequenceLoss({ ...config, ...lengths }, network, at)
    return yield* Learner.replayLearner(Learner.withSequences(experience, lengths), learning(loss))
  }
  if (distribution === null) {
    const network = yield* Learner.build(() => Model.qNetwork(options))
    const { experience, learning } = parts(config, task, withoutMemory(network))
    const valuesOf: Evaluate = (weights, observations) => ({ values: network.apply(weights, observations) })
    const loss = (at: DqnTransitions) => chosenLoss(config, valuesOf, at, Losses.dqnLoss(config, network, at))
    return yield* Learner.replayLearner(experience, learning(loss))
  }
  const network = yield* Learner.build(() => Model.distributionalQNetwork(options, distribution))
  const { experience, learning } = parts(config, task, withoutMemory(network))
  const distributionsOf: Evaluate = (weights, observations) => {
    const distributions = network.distributions(weights, observations)
    return { values: network.valuesOf(distributions, observations), distributions }
  }
  const loss = (at: DqnTransitions) =>
    chosenLoss(config, distributionsOf, at, Losses.distributionalLoss({ ...config, distribution }, network, at))
  return yield* Learner.replayLearner(experience, learning(loss))
})

type DqnTransitions = Losses.DqnInputs<Learner.Batch<Learner.ReplayColumns>>
type DqnSequences = Losses.DqnInputs<Learner.Batch<Learner.SequenceColumns>>
type Evaluate = (weights: Model.Weights, observations: Graph.Tensor) => Losses.ActionValues

/**
 * Returns the loss that the network learns from: the user's own or DQN's. In both cases priorities come from DQN's
 * errors.
 */
const chosenLoss = (
  { loss }: DqnConfig,
  evaluate: Evaluate,
  { batch, online, targetNetwork }: DqnTransitions,
  algorithms: Losses.DqnLoss & Losses.ActionValues,
): Losses.DqnLoss => ({
  errors: algorithms.errors,
  ...Learner.chosenLoss("loss", loss, batch, {
    ...algorithms,
    evaluate: (observations) => evaluate(online, observations),
    evaluateTarget: (observations) => evaluate(targetNetwork, observations),
  }),
})

/** The number of steps of a sequence if the config leaves it to the algorithm. */
const defaultSequence = 16

/**
 * Fails if a setting that needs a memory is set without `lstm`, or one that does not work with a memory is set with it.
 */
const checkMemory = ({
  lstm,
  sequence,
  burnIn,
  distribution,
  rescale,
  loss,
}: DqnConfig): Effect.Effect<void, ConfigError> => {
  const wrong = (key: string, problem: string) =>
    Effect.fail(ConfigError.at({ source: "dqn", prefix: ["algorithm"] }, key, problem))
  if (lstm === 0 && sequence > 0) return wrong("sequence", `${sequence} steps of a memory, but algorithm.lstm is 0`)
  if (lstm === 0 && burnIn > 0) return wrong("burn_in", `${burnIn} steps of a memory, but algorithm.lstm is 0`)
  if (lstm > 0 && loss !== null) return wrong("loss", "expected null with algorithm.lstm, which learns from sequences")
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
 * Makes the parts that all networks share: how they act, and how they learn by a loss. The online network is the actor,
 * which acts and learns. The trainer (`rl/train/Trainer.ts`) copies it into the target network every `updateTargetFreq`
 * env steps.
 */
const parts = (config: DqnConfig, task: Algorithm.Task, network: ActingNetwork) => {
  const noisy = config.noisy ? Model.noisyLayers(network.parameters) : undefined
  const actor: Model.Actor = {
    parameters: noisy?.parameters ?? network.parameters,
    noiseSize: 2 + (noisy?.noiseSize ?? 0),
    // All envs act with the same draw of the noisy weights.
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
      return { actions: argMax(values), memory, outputs: () => ({ q_values: values }) }
    },
  }
  const exploration = Learner.epsilonSchedule(config)
  const experience = Learner.replayExperience({ name: "dqn", task, config, actor, exploration, networks: {} })
  const targeted = Learner.withTargets(experience, ["actor"], { copyEvery: config.updateTargetFreq })
  return {
    experience: Learner.withPriorities(targeted, config.prioritised),
    learning: <B extends Noise>(lossOf: (at: Losses.DqnInputs<B>) => Losses.DqnLoss) => ({
      learningRates: { learningRate: config.learningRate },
      // `draws` are for the update as a whole, so the noise of all rows together must suffice for them.
      noiseSize: Math.ceil((draws * (noisy?.noiseSize ?? 0)) / config.batchSize),
      update: (learning: DqnLearning<B>) => update(config, lossOf, noisy, learning),
    }),
  }
}

// --- Update ---

type Noise = Pick<Learner.Batch<Learner.ReplayColumns>, "noise">
type DqnLearning<B> = Omit<Learner.Learning<never, "actor", "learningRate">, "batch"> & { readonly batch: B }

/** The number of draws of noisy weights in an update: to learn, to choose the next action, and to value it. */
const draws = 3

/** Describes one gradient step on a batch, with Adam or the config's optimiser. */
const update = <B extends Noise>(
  config: DqnConfig,
  lossOf: (at: Losses.DqnInputs<B>) => Losses.DqnLoss,
  noisy: Model.NoisyLayers | undefined,
  { batch, networks, targets, learningRates }: DqnLearning<B>,
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
