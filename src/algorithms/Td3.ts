import { Effect, Schema } from "effect"
import { fraction, nonNegative, positive, positiveInt, withDefault } from "../config/fields.ts"
import { type Box, sizeOf } from "../env/Space.ts"
import { normalFromUniform } from "../graph/distributions.ts"
import { orthogonal } from "../graph/initialisers.ts"
import { linear } from "../graph/layers.ts"
import { add, clip, mean, mul, tanh } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import { build } from "../learner/build.ts"
import { replayFields } from "../learner/replay/fields.ts"
import { replayExperience, withTargets } from "../learner/replay/ReplayExperience.ts"
import { type Learning, replayLearner, type Update } from "../learner/replay/ReplayLearner.ts"
import { adamStep, everyNth, polyak } from "../learner/replay/steps.ts"
import { needsBoundedBox } from "../learner/requirements.ts"
import { clippedDoubleQTarget, deterministicPolicyLoss, smoothedAction, twinCriticLoss } from "../losses/twinCritics.ts"
import type { Actor } from "../model/Actor.ts"
import { twinCritics } from "../model/critic.ts"
import type { DensePolicy } from "../model/DensePolicy.ts"
import { scaledActions } from "../model/scaledActions.ts"
import { denseLayers, networkFields, trunk, type Weights } from "../model/trunk.ts"
import type { Td3Options } from "./options/Td3.ts"

// --- Config ---

/**
 * Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018, arXiv:1802.09477): two critics of which the
 * smaller value counts, noise on target actions, and an actor that learns less often than its critics.
 */
export const Td3Config = Schema.Struct({
  ...replayFields,
  ...networkFields,
  /** The number of steps for which actions are drawn with the same noise: more than 1 explores in longer pushes. */
  noiseRepeat: withDefault(positiveInt, 1),
  /** The activation function between layers. */
  activation: withDefault(Schema.Literals(["tanh", "relu"]), "relu"),
  /** The learning rate of the actor and of the critics. */
  learningRate: withDefault(positive, 1e-3),
  /** The share by which the target networks move towards the online networks, each time the actor learns. */
  tau: withDefault(fraction, 0.005),
  /** The standard deviation of the noise on actions in play, as a share of half an action's range. */
  explorationNoise: withDefault(nonNegative, 0.1),
  /** The standard deviation of the noise on target actions, as a share of half an action's range. */
  targetNoise: withDefault(nonNegative, 0.2),
  /** The bound of the noise on target actions, which is clipped to plus and minus this. */
  targetNoiseClip: withDefault(nonNegative, 0.5),
  /** The number of updates of the critics for each update of the actor. */
  policyDelay: withDefault(positiveInt, 2),
})
export type Td3Config = typeof Td3Config.Type

// --- Networks ---

/** The networks: an actor that outputs one action for each observation, and two critics. */
const networks = (config: Td3Config, { observationSpace }: Task, actionSpace: Box) => {
  const size = sizeOf(actionSpace)
  const body = trunk("actor", observationSpace, config)
  const head = linear(`actor.${body.depth}`, body.outputs, size, orthogonal(0.01))
  return {
    actionSize: size,
    parameters: { ...body.parameters, ...head.parameters },
    policy: (weights: Weights, observations: Tensor): Tensor =>
      tanh(head.apply(weights, body.apply(weights, observations))),
    critics: twinCritics(observationSpace, actionSpace, config),
    /** The networks' actions are from −1 to 1; the env's have its bounds. */
    scale: scaledActions(actionSpace),
  }
}
type Networks = ReturnType<typeof networks>

/** The actor as dense layers, for exports as plain code. */
const denseActor = (config: Td3Config, space: Box): DensePolicy | undefined => {
  const dense = denseLayers("actor", space, config, "tanh")
  return dense === undefined ? undefined : { ...dense, scaled: true }
}

// --- Acting and replay ---

const setup = Effect.fnUntraced(function* (config: Td3Config, task: Task) {
  const actionSpace = yield* needsBoundedBox("td3", task)
  const nets = yield* build(() => networks(config, task, actionSpace))
  const { actionSize, policy, scale } = nets
  const actor: Actor = {
    parameters: nets.parameters,
    dense: denseActor(config, task.observationSpace),
    noiseSize: 2 * actionSize,
    memorySize: 0,
    keeps: [],
    act: ({ weights, observations, noise }) => {
      const exploration = mul(normalFromUniform(noise), config.explorationNoise)
      return { actions: scale.toEnv(clip(add(policy(weights, observations), exploration), -1, 1)), kept: {} }
    },
    greedy: ({ weights, observations }) => ({ actions: scale.toEnv(policy(weights, observations)) }),
  }
  const experience = replayExperience({
    name: "td3",
    task,
    config,
    actor,
    networks: { critic: nets.critics.parameters },
  })
  return yield* replayLearner(withTargets(experience, ["actor", "critic"]), {
    scalars: { learningRate: config.learningRate },
    noiseSize: actor.noiseSize,
    update: (learning) => update(config, nets, learning),
  })
})

// --- Targets and update ---

/** One gradient step on a batch, as in Algorithm 1 of the paper: critics; then, less often, actor and target networks. */
const update = (
  config: Td3Config,
  { policy, critics, scale }: Networks,
  { batch, networks, targets, scalars }: Learning<"critic", "actor" | "critic", "learningRate">,
): Update => {
  const { observations, actions, rewards, nextObservations, discounts, noise } = batch
  const { maxGradNorm, targetNoise, targetNoiseClip, tau } = config
  const optimiser = { learningRate: scalars.learningRate, maxGradNorm }

  // Target: y = r + γ min Q′(s′, a′), with a′ = μ′(s′) and clipped noise.
  const nextAction = smoothedAction({
    action: policy(targets.actor.weights, nextObservations),
    noise: normalFromUniform(noise),
    deviation: targetNoise,
    bound: targetNoiseClip,
  })
  const q_t = critics.apply(targets.critic.weights, nextObservations, nextAction)
  const target = clippedDoubleQTarget({ r_t: rewards, discount_t: discounts, q_t })

  // Critics: E[(Q₁ − y)² + (Q₂ − y)²].
  const q_tm1 = critics.apply(networks.critic.weights, observations, scale.fromEnv(actions))
  const criticLoss = twinCriticLoss({ q_tm1, target })
  const criticStep = adamStep(networks.critic, criticLoss, optimiser)

  // Actor: −E[Q₁(s, μ(s))], by the critic after its own step.
  const criticWeights = networks.critic.layout.tensorsOf(criticStep.next)
  const [q] = critics.apply(criticWeights, observations, policy(networks.actor.weights, observations))
  const actorLoss = deterministicPolicyLoss(q)
  const actorStep = adamStep(networks.actor, actorLoss, optimiser)

  return {
    states: {
      ...criticStep.states,
      ...everyNth(config.policyDelay, "updates", {
        ...actorStep.states,
        ...polyak(targets.actor, actorStep.next, tau),
        ...polyak(targets.critic, criticStep.next, tau),
      }),
    },
    metrics: { "losses/critic_loss": criticLoss, "losses/actor_loss": actorLoss, "losses/q_values": mean(q_tm1[0]) },
  }
}

/**
 * TD3 as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: Pendulum.env, numEnvs: 1, algorithm: Td3.make({ batchSize: 128 }), totalSteps: 20_000 })
 * ```
 */
export const make: (options?: Td3Options) => Algorithm = define({ name: "td3", config: Td3Config, setup }).make
