import { Effect, Schema } from "effect"
import * as Fields from "../../config/fields.ts"
import * as Space from "../../env/Space.ts"
import * as Distributions from "../../graph/distributions.ts"
import * as Initialisers from "../../graph/initialisers.ts"
import * as Layers from "../../graph/layers.ts"
import * as Graph from "../../graph/ops.ts"
import * as Optimisers from "../../graph/optimisers.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/Learner.ts"
import * as Losses from "../../losses/Losses.ts"
import * as Model from "../../model/Model.ts"

const { clip, exp, mean, mul, neg, slice, state } = Graph

/**
 * Soft actor-critic (Haarnoja et al. 2018, arXiv:1812.05905): a squashed Gaussian policy whose entropy adds to its
 * return, two critics of which the smaller value counts, and a temperature that keeps the entropy at a target.
 */

// --- Config: `SacOptions` are the settings in code; `SacConfig` checks them and fills in the defaults ---

export interface SacOptions extends Learner.ReplayOptions, Model.NetworkOptions {
  /** The activation function between layers. @default "relu" */
  readonly activation?: "tanh" | "relu"
  /** The number of consecutive steps whose actions are drawn with the same random numbers. @default 1 */
  readonly noiseRepeat?: number
  /**
   * The learning rate of the actor and of the temperature, and of the critics unless `criticLearningRate` is set.
   * @default 0.0003
   */
  readonly learningRate?: number
  /** The learning rate of the critics; null takes the actor's learning rate. @default null */
  readonly criticLearningRate?: number | null
  /** The share by which the target critics move towards the critics in each update. @default 0.005 */
  readonly tau?: number
  /** The entropy temperature, which is the weight of the policy's entropy; null learns it. @default null */
  readonly alpha?: number | null
  /**
   * The entropy at which a learned temperature keeps the policy, for actions scaled to −1 … 1; null is minus the number
   * of an action's elements. @default null
   */
  readonly targetEntropy?: number | null
}

export const SacConfig = Schema.Struct({
  ...Learner.replayFields,
  ...Model.networkFields,
  noiseRepeat: Fields.withDefault(Fields.positiveInt, 1),
  activation: Fields.withDefault(Schema.Literals(["tanh", "relu"]), "relu"),
  learningRate: Fields.withDefault(Fields.positive, 3e-4),
  criticLearningRate: Fields.withDefault(Schema.NullOr(Fields.positive), null),
  tau: Fields.withDefault(Fields.fraction, 0.005),
  alpha: Fields.withDefault(Schema.NullOr(Fields.positive), null),
  targetEntropy: Fields.withDefault(Schema.NullOr(Schema.Finite), null),
})
export type SacConfig = typeof SacConfig.Type

// --- Networks ---

// The bounds of log σ, the logarithm of the policy's standard deviation, as in the code of the paper's authors.
const lowestLogDeviation = -20
const highestLogDeviation = 2

/** Makes the networks: an actor that outputs a squashed Gaussian for each observation, and two critics. */
const networks = (config: SacConfig, { observationSpace }: Algorithm.Task, actionSpace: Space.Box) => {
  const size = Space.sizeOf(actionSpace)
  const body = Model.trunk("actor", observationSpace, config, Model.networkFor(config, "actor"))
  const center = Layers.linear("actor.mean", body.outputs, size, Initialisers.orthogonal(0.01))
  const logDeviation = Layers.linear("actor.logStd", body.outputs, size, Initialisers.orthogonal(0.01))
  return {
    actionSize: size,
    parameters: { ...body.parameters, ...center.parameters, ...logDeviation.parameters },
    policy: (weights: Model.Weights, observations: Graph.Tensor): Distributions.SquashedGaussian => {
      const features = body.apply(weights, observations)
      const clipped = clip(logDeviation.apply(weights, features), lowestLogDeviation, highestLogDeviation)
      return Distributions.squashedGaussian(center.apply(weights, features), clipped)
    },
    critics: Model.critics(2, observationSpace, actionSpace, config),
    scale: Model.scaledActions(actionSpace),
  }
}
type Networks = ReturnType<typeof networks>

/** Describes the actor as dense layers, for export as C; undefined if it has others. The last outputs μ, then log σ. */
const denseActor = (config: SacConfig, space: Space.RowSpace): Model.DensePolicy | undefined => {
  const dense = Model.denseLayers("actor", space, config)
  if (dense === undefined) return undefined
  const last = { names: ["actor.mean", "actor.logStd"], activation: "identity" } as const
  return { layers: [...dense.layers.slice(0, -1), last], head: "sample_and_squash", scaled: true }
}

// --- Learner, which `make` below sets up for a task: acting and replay ---

const setup = Effect.fnUntraced(function* (config: SacConfig, task: Algorithm.Task) {
  const actionSpace = yield* Learner.needsBoundedBox("sac", task)
  const nets = yield* Learner.build(() => networks(config, task, actionSpace))
  const { actionSize, policy, scale } = nets
  const actor: Model.Actor = {
    parameters: nets.parameters,
    dense: denseActor(config, task.observationSpace),
    // Two uniform numbers make one normal number.
    noiseSize: 2 * actionSize,
    memorySize: 0,
    keeps: [],
    act: ({ weights, observations, noise }) => ({
      actions: scale.toEnv(policy(weights, observations).sample(noise)),
      kept: {},
    }),
    greedy: ({ weights, observations }) => ({ actions: scale.toEnv(policy(weights, observations).mode()) }),
  }
  const experience = Learner.replayExperience({
    name: "sac",
    task,
    config,
    actor,
    networks: { critic: nets.critics.parameters },
  })
  return yield* Learner.replayLearner(Learner.withTargets(experience, ["critic"]), {
    learningRates: {
      learningRate: config.learningRate,
      criticLearningRate: config.criticLearningRate ?? config.learningRate,
    },
    // Each transition needs one action for its target and one for the actor's loss.
    noiseSize: 2 * actor.noiseSize,
    update: (learning) => update(config, nets, learning),
  })
})

// --- Targets and update ---

/** Describes a gradient step on a batch, Algorithm 1 of the paper: critics, actor, temperature, target critics. */
const update = (
  config: SacConfig,
  { actionSize, policy, critics, scale }: Networks,
  learning: Learner.Learning<"critic", "critic", "learningRate" | "criticLearningRate">,
): Learner.Update => {
  const { batch, networks, targets, learningRates } = learning
  const { observations, actions, rewards, nextObservations, discounts, noise } = batch
  const [rows] = noise.shape
  // `noise` has the numbers for two actions in each row: 0 is the action of the target, 1 that of the actor's loss.
  const noiseOf = (action: 0 | 1): Graph.Tensor => slice(noise, [0, action * 2 * actionSize], [rows, 2 * actionSize])
  const { learningRate, criticLearningRate } = learningRates
  const { maxGradNorm, optimiser } = config
  // States start at zero, so α starts at 1.
  const logAlpha = state("logAlpha", [1])
  const alpha = config.alpha ?? exp(logAlpha)

  // Target: y = r + γ (min Q′(s′, a′) − α log π(a′ | s′)), with the target critics Q′, and a′ drawn from the policy.
  // `discounts` has γ, and 0 where the episode terminated; truncated episodes keep the value of the final observation.
  const nextPolicy = policy(networks.actor.weights, nextObservations)
  const next = nextPolicy.sampleBoth(noiseOf(0))
  const target = Losses.softTarget({
    r_t: rewards,
    discount_t: discounts,
    q_t: critics.apply(targets.critic.weights, nextObservations, next.action),
    logProbability_t: nextPolicy.logProbabilityOfRaw(next.raw),
    alpha,
  })

  // Critics: ½ E[(Q₁ − y)² + (Q₂ − y)²].
  const q_tm1 = critics.apply(networks.critic.weights, observations, scale.fromEnv(actions))
  const criticLoss = mul(Losses.criticLoss({ q_tm1, target }), 0.5)
  const criticStep = Learner.gradientStep(networks.critic, criticLoss, {
    learningRate: criticLearningRate,
    maxGradNorm,
    optimiser,
  })

  // Actor: E[α log π(a | s) − min Q(s, a)], with the critics after their own gradient step.
  const currentPolicy = policy(networks.actor.weights, observations)
  const current = currentPolicy.sampleBoth(noiseOf(1))
  const logProbability = currentPolicy.logProbabilityOfRaw(current.raw)
  const q = critics.apply(networks.critic.layout.tensorsOf(criticStep.next), observations, current.action)
  const actorLoss = Losses.softPolicyLoss({ q, logProbability, alpha })
  const actorStep = Learner.gradientStep(networks.actor, actorLoss, { learningRate, maxGradNorm, optimiser })

  // Temperature: keeps the policy's entropy near the target entropy, unless it is fixed.
  const targetEntropy = config.targetEntropy ?? -actionSize
  const temperatureOptimiser = Optimisers.adam({ name: "alpha.adam", size: 1, learningRate })
  const temperatureStep = temperatureOptimiser.update(
    logAlpha,
    Losses.temperatureGradient({ logProbability, targetEntropy }),
  )

  return {
    states: {
      ...actorStep.states,
      ...criticStep.states,
      ...Learner.polyak(targets.critic, criticStep.next, config.tau),
      ...(config.alpha === null
        ? { logAlpha: { tensor: logAlpha, next: temperatureStep.next }, ...temperatureStep.moments }
        : {}),
    },
    metrics: {
      "losses/critic_loss": criticLoss,
      "losses/actor_loss": actorLoss,
      "losses/q_values": mean(q_tm1[0]),
      "losses/entropy": neg(mean(logProbability)),
      ...(config.alpha === null ? { "charts/alpha": mean(exp(logAlpha)) } : {}),
    },
  }
}

/**
 * Makes SAC; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: Pendulum.env, numEnvs: 1, algorithm: Sac.make({ learningRate: 1e-3 }), totalSteps: 20_000 })
 * ```
 */
export const make: Algorithm.Make<SacOptions> = Algorithm.define({ name: "sac", config: SacConfig, setup }).make
