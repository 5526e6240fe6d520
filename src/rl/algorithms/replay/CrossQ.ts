/**
 * CrossQ (Bhatt et al. 2024, arXiv:1902.05605): SAC without target networks, whose critics and actor normalise their layers by batch
 * renormalisation. The critics value the transitions and their next states in one batch, so that the statistics are those of
 * both. The critics are wide, and the actor learns in every third update.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { ConfigError } from "../../../base/config/Config.ts"
import * as Fields from "../../../base/config/fields.ts"
import * as Space from "../../env/Space.ts"
import * as Distributions from "../../../tensor/graph/distributions.ts"
import * as Initialisers from "../../../tensor/graph/initialisers.ts"
import * as Layers from "../../../tensor/graph/layers.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/offPolicy.ts"
import * as Losses from "../../losses/critics.ts"
import * as Model from "../../model/Model.ts"
import * as Sac from "./Sac.ts"

const { concat, mean, mul, neg, reshape, slice, stopGradient } = Graph

// --- Config: `CrossQOptions` are the settings in code; `CrossQConfig` checks them and fills in the defaults ---

export interface CrossQOptions extends Learner.BufferOptions {
  /** The activation function between layers. @default "relu" */
  readonly activation?: "tanh" | "relu"
  /** The number of consecutive steps whose actions are drawn with the same random numbers. @default 1 */
  readonly noiseRepeat?: number
  /**
   * The entropy temperature, which is the weight of the policy's entropy; null learns it, and so does `auto_0.1`, which starts at
   * 0.1. @default null
   */
  readonly alpha?: number | string | null
  /** The initial value of a learned temperature. @default 1 */
  readonly alphaStart?: number
  /** The sizes of the actor's hidden layers. @default [256,256] */
  readonly hidden?: ReadonlyArray<number>
  /** The sizes of the critics' hidden layers; the paper has two of 2048. @default [512,512] */
  readonly criticHidden?: ReadonlyArray<number>
  /** The learning rate of actor, critics and temperature. @default 0.001 */
  readonly learningRate?: Learner.Scheduled
  /** The number of updates of the critics for each update of the actor and the temperature. @default 3 */
  readonly policyDelay?: number
  /** The number of updates of a layer in which it normalises by its batch alone. @default 100000 */
  readonly renormWarmUp?: number
  /**
   * The entropy at which a learned temperature keeps the policy, for actions scaled to −1 … 1; null is minus the number
   * of an action's elements. @default null
   */
  readonly targetEntropy?: number | null
  /**
   * Generalised state-dependent exploration: `{}` makes the noise on actions a function of the state that stays the same for some
   * steps, which is smoother; null draws noise for each step. @default null
   */
  readonly sde?: Learner.ReplaySdeOptions | null
  /** With `sde`, the logarithm of the initial standard deviations of its matrix. @default -3 */
  readonly logStdInit?: number
}

const { network: _network, ...replayFields } = Learner.replayFields
const { activation, noiseRepeat, targetEntropy, sde, logStdInit } = Sac.sacFields

export const CrossQConfig = Schema.Struct({
  ...replayFields,
  hidden: Fields.withDefault(Fields.layers, [256, 256]),
  criticHidden: Fields.withDefault(Fields.layers, [512, 512]),
  activation,
  noiseRepeat,
  learningRate: Fields.withDefault(Learner.learningRateSetting, 1e-3),
  policyDelay: Fields.withDefault(Fields.bounded("count"), 3),
  renormWarmUp: Fields.withDefault(Fields.bounded("countOrNone"), 100_000),
  ...Learner.temperatureFields,
  targetEntropy,
  sde,
  logStdInit,
})
export type CrossQConfig = typeof CrossQConfig.Type

/** The paper's optimiser: Adam with a smaller β₁, so that its first moment forgets faster. */
const defaultOptimiser = { name: "adam", beta1: 0.5 } as const

// --- Networks ---

/** A value, with the statistics that the normalising layers have after the batch. */
interface CrossQLearned<A> {
  readonly value: A
  readonly statistics: Model.Statistics
}

/** Makes the actor, which outputs a squashed Gaussian for each observation, and two critics. */
const networks = (config: CrossQConfig, observationSpace: Space.RowSpace, actionSpace: Space.Box) => {
  const size = Space.sizeOf(actionSpace)
  const seen = Model.vectorSizeOf(observationSpace)
  const { activation, renormWarmUp: warmUp } = config
  const actor = Model.normalisedMlp("actor", seen, { hidden: config.hidden, activation, warmUp })
  const center = Layers.linear("actor.mean", actor.outputs, size, Initialisers.orthogonal(0.01))
  const deviations = Sac.deviations(config, actor.outputs, size)
  const policyOf = (weights: Model.Weights, features: Graph.Tensor): Distributions.SquashedGaussian =>
    Distributions.squashed(deviations.gaussian(weights, features, center.apply(weights, features)))
  const critics = [1, 2].map((number) => {
    const name = `critic${number}`
    const body = Model.normalisedMlp(name, seen + size, { hidden: config.criticHidden, activation, warmUp })
    return { body, head: Layers.linear(`${name}.value`, body.outputs, 1) }
  })
  const inputs = (observations: Graph.Tensor, actions: Graph.Tensor): Graph.Tensor =>
    concat([Model.asVectors(observationSpace, observations), actions], 1)
  const flat = (column: Graph.Tensor): Graph.Tensor => reshape(column, [column.shape[0]])
  return {
    actionSize: size,
    noiseSize: deviations.noiseSize,
    parameters: { ...actor.parameters, ...center.parameters, ...deviations.parameters },
    criticParameters: Object.fromEntries(
      critics.flatMap(({ body, head }) => Object.entries({ ...body.parameters, ...head.parameters })),
    ),
    scale: Model.scaledActions(actionSpace),
    policy: (weights: Model.Weights, observations: Graph.Tensor): Distributions.SquashedGaussian =>
      policyOf(weights, actor.apply(weights, Model.asVectors(observationSpace, observations))),
    /** Computes the policy with the statistics of the batch that it learns from. */
    learnedPolicy: (
      weights: Model.Weights,
      observations: Graph.Tensor,
    ): CrossQLearned<Distributions.SquashedGaussian> => {
      const { value, statistics } = actor.learn(weights, Model.asVectors(observationSpace, observations))
      return { value: policyOf(weights, value), statistics }
    },
    values: (weights: Model.Weights, observations: Graph.Tensor, actions: Graph.Tensor): ReadonlyArray<Graph.Tensor> =>
      critics.map(({ body, head }) => flat(head.apply(weights, body.apply(weights, inputs(observations, actions))))),
    learnedValues: (
      weights: Model.Weights,
      observations: Graph.Tensor,
      actions: Graph.Tensor,
    ): CrossQLearned<ReadonlyArray<Graph.Tensor>> => {
      const learned = critics.map(({ body, head }) => ({ ...body.learn(weights, inputs(observations, actions)), head }))
      return {
        value: learned.map(({ value, head }) => flat(head.apply(weights, value))),
        statistics: Object.fromEntries(learned.flatMap(({ statistics }) => Object.entries(statistics))),
      }
    },
  }
}
type CrossQNetworks = ReturnType<typeof networks>

// --- Learner, which `make` below sets up for a task: acting and replay ---

const setup = Effect.fnUntraced(function* (config: CrossQConfig, task: Algorithm.Task) {
  const actionSpace = yield* Learner.needsBoundedBox("cross-q", task)
  yield* Learner.checkSde("cross-q", config, task)
  yield* Learner.checkTemperature("cross-q", config)
  if (Model.hasImages(task.observationSpace)) {
    const problem = `cross-q has no layers for images, found ${Space.display(task.observationSpace)}; sac has some`
    return yield* ConfigError.at({ source: "cross-q" }, "env", problem)
  }
  const nets = yield* Learner.build(() => networks(config, task.observationSpace, actionSpace))
  const { noiseSize } = nets
  const experience = Sac.squashedExperience("cross-q", config, task, nets)
  return yield* Learner.replayLearner(experience, {
    learningRates: { learningRate: config.learningRate },
    noiseSize: config.sde === null ? 2 * noiseSize : Math.ceil(noiseSize / config.batchSize),
    update: (learning) => update(config, nets, learning),
  })
})

// --- Update ---

/** Takes a gradient step, and sets the statistics of the normalising layers. */
const stepWith = (
  net: Parameters<typeof Learner.gradientStep>[0],
  loss: Graph.Tensor,
  statistics: Model.Statistics,
  options: Parameters<typeof Learner.gradientStep>[2],
) => {
  const { next, states } = Learner.gradientStep(net, loss, options)
  const whole = Model.withStatistics(net.layout, next, statistics)
  return { next: whole, states: { ...states, [net.name]: { tensor: net.theta, next: whole } } }
}

/**
 * Describes a gradient step of the critics on a batch and, in every `policyDelay`-th update, of the actor and the
 * temperature.
 */
const update = (
  config: CrossQConfig,
  { actionSize, noiseSize, policy, learnedPolicy, values, learnedValues, scale }: CrossQNetworks,
  { batch, networks, learningRates }: Learner.Learning<"critic", never, "learningRate">,
): Learner.Update => {
  const { observations, actions, nextObservations, rewards, discounts, noise } = batch
  const { learningRate } = learningRates
  const options = { learningRate, maxGradNorm: config.maxGradNorm, optimiser: config.optimiser ?? defaultOptimiser }
  const [rows] = observations.shape
  const noiseOf = (action: 0 | 1): Graph.Tensor =>
    config.sde === null
      ? slice(noise, [0, action * noiseSize], [rows, noiseSize])
      : slice(reshape(noise, [1, -1]), [0, 0], [1, noiseSize])
  const { alpha, ...learnedAlpha } = Learner.temperature(config, learningRate)

  // The critics value both ends of the transitions in one batch. Target: y = r + γ (min Q(s′, a′) − α log π(a′ | s′)), with the
  // critics themselves. Critics: ½ E[(Q₁ − y)² + (Q₂ − y)²].
  const nextPolicy = policy(networks.actor.weights, nextObservations)
  const next = nextPolicy.sampleBoth(noiseOf(0))
  const both = learnedValues(
    networks.critic.weights,
    concat([observations, nextObservations], 0),
    concat([scale.fromEnv(actions), stopGradient(next.action)], 0),
  )
  const half = (from: number) => both.value.map((all) => slice(all, [from], [rows]))
  const [q_tm1, q_t] = [half(0), half(rows)]
  const target = Losses.softTarget({
    r_t: rewards,
    discount_t: discounts,
    q_t: q_t.map((value) => stopGradient(value)),
    logProbability_t: nextPolicy.logProbabilityOfRaw(next.raw),
    alpha,
  })
  const criticLoss = mul(Losses.criticLoss({ q_tm1, target }), 0.5)
  const critic = stepWith(networks.critic, criticLoss, both.statistics, options)

  // Actor: E[α log π(a | s) − min Q(s, a)], with the critics after their own step, normalised by running statistics.
  const current = learnedPolicy(networks.actor.weights, observations)
  const drawn = current.value.sampleBoth(noiseOf(1))
  const logProbability = current.value.logProbabilityOfRaw(drawn.raw)
  const q = values(networks.critic.layout.tensorsOf(critic.next), observations, drawn.action)
  const actorLoss = Losses.softPolicyLoss({ q, logProbability, alpha })
  const actor = stepWith(networks.actor, actorLoss, current.statistics, options)
  return {
    states: {
      ...critic.states,
      ...Learner.everyNth(config.policyDelay, "updates", {
        ...actor.states,
        ...learnedAlpha.step(logProbability, config.targetEntropy ?? -actionSize),
      }),
    },
    metrics: {
      "losses/critic_loss": criticLoss,
      "losses/q_values": mean(q_tm1[0]),
      "losses/actor_loss": actorLoss,
      "losses/entropy": neg(mean(logProbability)),
      ...learnedAlpha.metrics,
    },
  }
}

/**
 * Makes CrossQ; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: Pendulum.env, numEnvs: 1, algorithm: CrossQ.make({ policyDelay: 2 }), totalSteps: 20_000 })
 * ```
 */
export const make: Algorithm.Make<CrossQOptions> = Algorithm.define({
  name: "cross-q",
  config: CrossQConfig,
  setup: (config, task) => setup(config, task),
}).make
