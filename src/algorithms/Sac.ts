import { Effect, Schema } from "effect"
import { fraction, positive, positiveInt, withDefault } from "../config/fields.ts"
import { type Box, sizeOf } from "../env/Space.ts"
import { type SquashedGaussian, squashedGaussian } from "../graph/distributions.ts"
import { orthogonal } from "../graph/initialisers.ts"
import { linear } from "../graph/layers.ts"
import { clip, exp, mean, mul, neg, slice, state } from "../graph/ops.ts"
import { adam } from "../graph/optimisers.ts"
import type { Tensor } from "../graph/Tensor.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import { build } from "../learner/build.ts"
import { replayFields } from "../learner/replay/fields.ts"
import { replayExperience, withTargets } from "../learner/replay/ReplayExperience.ts"
import { type Learning, replayLearner, type Update } from "../learner/replay/ReplayLearner.ts"
import { adamStep, polyak } from "../learner/replay/steps.ts"
import { needsBoundedBox } from "../learner/requirements.ts"
import { softPolicyLoss, softTarget, temperatureGradient, twinCriticLoss } from "../losses/twinCritics.ts"
import type { Actor } from "../model/Actor.ts"
import { twinCritics } from "../model/critic.ts"
import type { DensePolicy } from "../model/DensePolicy.ts"
import { scaledActions } from "../model/scaledActions.ts"
import { denseLayers, networkFields, trunk, type Weights } from "../model/trunk.ts"
import type { SacOptions } from "./options/Sac.ts"

// --- Config ---

/**
 * Soft actor-critic (Haarnoja et al. 2018, arXiv:1812.05905): a squashed Gaussian policy whose entropy adds to its
 * return, two critics of which the smaller value counts, and a temperature that keeps the entropy at a target.
 */
export const SacConfig = Schema.Struct({
  ...replayFields,
  ...networkFields,
  /** The number of steps for which actions are drawn with the same noise: more than 1 explores in longer pushes. */
  noiseRepeat: withDefault(positiveInt, 1),
  /** The activation function between layers. */
  activation: withDefault(Schema.Literals(["tanh", "relu"]), "relu"),
  /** The learning rate of the actor and of the temperature, and of the critics unless `criticLearningRate` is set. */
  learningRate: withDefault(positive, 3e-4),
  /** The learning rate of the critics; null takes the actor's. */
  criticLearningRate: withDefault(Schema.NullOr(positive), null),
  /** The share by which the target critics move towards the critics in each update. */
  tau: withDefault(fraction, 0.005),
  /** The entropy temperature, which is the weight of the policy's entropy; null learns it. */
  alpha: withDefault(Schema.NullOr(positive), null),
  /**
   * The entropy that a learned temperature keeps, for actions in −1 … 1; null is minus the number of an action's
   * elements.
   */
  targetEntropy: withDefault(Schema.NullOr(Schema.Finite), null),
})
export type SacConfig = typeof SacConfig.Type

// --- Networks ---

/** The bounds of log σ, as in the authors' code. */
const lowestLogDeviation = -20
const highestLogDeviation = 2

/** The networks: an actor that outputs a squashed Gaussian for each observation, and two critics. */
const networks = (config: SacConfig, { observationSpace }: Task, actionSpace: Box) => {
  const size = sizeOf(actionSpace)
  const body = trunk("actor", observationSpace, config)
  const mean = linear("actor.mean", body.outputs, size, orthogonal(0.01))
  const logDeviation = linear("actor.logStd", body.outputs, size, orthogonal(0.01))
  return {
    actionSize: size,
    parameters: { ...body.parameters, ...mean.parameters, ...logDeviation.parameters },
    policy: (weights: Weights, observations: Tensor): SquashedGaussian => {
      const features = body.apply(weights, observations)
      const clipped = clip(logDeviation.apply(weights, features), lowestLogDeviation, highestLogDeviation)
      return squashedGaussian(mean.apply(weights, features), clipped)
    },
    critics: twinCritics(observationSpace, actionSpace, config),
    /** The networks' actions are from −1 to 1; the env's have its bounds. */
    scale: scaledActions(actionSpace),
  }
}
type Networks = ReturnType<typeof networks>

/** The actor as dense layers: mean and log deviation are the two halves of the last one. */
const denseActor = (config: SacConfig, space: Box): DensePolicy | undefined => {
  const dense = denseLayers("actor", space, config)
  if (dense === undefined) return undefined
  const last = { names: ["actor.mean", "actor.logStd"], activation: "identity" } as const
  return { layers: [...dense.layers.slice(0, -1), last], head: "sample_and_squash", scaled: true }
}

// --- Acting and replay ---

const setup = Effect.fnUntraced(function* (config: SacConfig, task: Task) {
  const actionSpace = yield* needsBoundedBox("sac", task)
  const nets = yield* build(() => networks(config, task, actionSpace))
  const { actionSize, policy, scale } = nets
  const actor: Actor = {
    parameters: nets.parameters,
    dense: denseActor(config, task.observationSpace),
    noiseSize: 2 * actionSize,
    memorySize: 0,
    keeps: [],
    act: ({ weights, observations, noise }) => ({
      actions: scale.toEnv(policy(weights, observations).sample(noise)),
      kept: {},
    }),
    greedy: ({ weights, observations }) => ({ actions: scale.toEnv(policy(weights, observations).mode()) }),
  }
  const experience = replayExperience({
    name: "sac",
    task,
    config,
    actor,
    networks: { critic: nets.critics.parameters },
  })
  return yield* replayLearner(withTargets(experience, ["critic"]), {
    scalars: {
      learningRate: config.learningRate,
      criticLearningRate: config.criticLearningRate ?? config.learningRate,
    },
    // Each transition needs one action for its target and one for the actor's loss.
    noiseSize: 2 * actor.noiseSize,
    update: (learning) => update(config, nets, learning),
  })
})

// --- Targets and update ---

/** One gradient step on a batch, as in Algorithm 1 of the paper: critics, actor, temperature, target critics. */
const update = (
  config: SacConfig,
  { actionSize, policy, critics, scale }: Networks,
  learning: Learning<"critic", "critic", "learningRate" | "criticLearningRate">,
): Update => {
  const { batch, networks, targets, scalars } = learning
  const { observations, actions, rewards, nextObservations, discounts, noise } = batch
  const [rows] = noise.shape
  const noiseOf = (action: 0 | 1): Tensor => slice(noise, [0, action * 2 * actionSize], [rows, 2 * actionSize])
  const { learningRate, criticLearningRate } = scalars
  const { maxGradNorm } = config
  const logAlpha = state("logAlpha", [1])
  const alpha = config.alpha ?? exp(logAlpha)

  // Target: y = r + γ (min Q′(s′, a′) − α log π(a′ | s′)), with a′ drawn from the current policy.
  const nextPolicy = policy(networks.actor.weights, nextObservations)
  const next = nextPolicy.sampleBoth(noiseOf(0))
  const target = softTarget({
    r_t: rewards,
    discount_t: discounts,
    q_t: critics.apply(targets.critic.weights, nextObservations, next.action),
    logProbability_t: nextPolicy.logProbabilityOfRaw(next.raw),
    alpha,
  })

  // Critics: ½ E[(Q₁ − y)² + (Q₂ − y)²].
  const q_tm1 = critics.apply(networks.critic.weights, observations, scale.fromEnv(actions))
  const criticLoss = mul(twinCriticLoss({ q_tm1, target }), 0.5)
  const criticStep = adamStep(networks.critic, criticLoss, { learningRate: criticLearningRate, maxGradNorm })

  // Actor: E[α log π(a | s) − min Q(s, a)], by the critics after their own step.
  const currentPolicy = policy(networks.actor.weights, observations)
  const current = currentPolicy.sampleBoth(noiseOf(1))
  const logProbability = currentPolicy.logProbabilityOfRaw(current.raw)
  const q = critics.apply(networks.critic.layout.tensorsOf(criticStep.next), observations, current.action)
  const actorLoss = softPolicyLoss({ q, logProbability, alpha })
  const actorStep = adamStep(networks.actor, actorLoss, { learningRate, maxGradNorm })

  // Temperature: keeps the policy's entropy near the target entropy, unless it is fixed.
  const targetEntropy = config.targetEntropy ?? -actionSize
  const temperature = adam({ name: "alpha.adam", size: 1, learningRate })
  const nextLogAlpha = temperature.update(logAlpha, temperatureGradient({ logProbability, targetEntropy }))

  return {
    states: {
      ...actorStep.states,
      ...criticStep.states,
      ...polyak(targets.critic, criticStep.next, config.tau),
      ...(config.alpha === null
        ? { logAlpha: { tensor: logAlpha, next: nextLogAlpha.next }, ...nextLogAlpha.moments }
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
 * SAC as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: Pendulum.env, numEnvs: 1, algorithm: Sac.make({ learningRate: 1e-3 }), totalSteps: 20_000 })
 * ```
 */
export const make: (options?: SacOptions) => Algorithm = define({ name: "sac", config: SacConfig, setup }).make
