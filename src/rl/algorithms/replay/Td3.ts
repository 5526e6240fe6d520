/**
 * Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018, arXiv:1802.09477): DDPG with two critics, of
 * whose values the smaller one counts, noise on target actions, and an actor that learns less often than its critics.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
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

const { add, clip, mean, mul, stopGradient, tanh } = Graph

// --- Config: `Td3Options` are the settings in code; `Td3Config` checks them and fills in the defaults ---

/** The settings that DDPG has, too. */
export interface DeterministicOptions extends Learner.ReplayOptions, Model.NetworkOptions {
  /** The activation function between layers. @default "relu" */
  readonly activation?: "tanh" | "relu"
  /** The number of consecutive steps whose actions are drawn with the same random numbers. @default 1 */
  readonly noiseRepeat?: number
  /** The learning rate of the actor and of the critics. @default 0.001 */
  readonly learningRate?: Learner.Scheduled
  /** The share by which the target networks move towards the online networks, each time the actor learns. @default 0.005 */
  readonly tau?: number
  /**
   * The noise on actions in rollouts: `normal` is drawn anew for each step, and the noise of an `ornstein-uhlenbeck` process moves
   * slowly from 0 in each episode. @default "normal"
   */
  readonly noiseType?: "normal" | "ornstein-uhlenbeck"
  /**
   * The standard deviation of the noise on actions in rollouts, as a share of half an action's range; for an
   * Ornstein-Uhlenbeck process, the standard deviation of its steps per unit of time. It can change over the run.
   * @default 0.1
   */
  readonly explorationNoise?: Learner.Scheduled
  /** Whether the random actions before `learningStarts` get the noise too, as in Stable-Baselines3. @default false */
  readonly warmUpNoise?: boolean
  /**
   * A loss of your own for the critics: a function of a batch and of the critics' outputs, which include the
   * algorithm's loss. Only code can set one; null keeps the algorithm's. @default null
   */
  readonly criticLoss?: Learner.OwnReplayLoss<Learner.CriticOutputs> | null
  /**
   * A loss of your own for the actor: a function of a batch and of the actor's outputs, which include the algorithm's
   * loss. Only code can set one; null keeps the algorithm's. @default null
   */
  readonly actorLoss?: Learner.OwnReplayLoss<Learner.ActorOutputs> | null
}

export interface Td3Options extends DeterministicOptions {
  /** The number of critics, of whose values the smallest counts. @default 2 */
  readonly critics?: number
  /** The standard deviation of the noise on target actions, as a share of half an action's range. @default 0.2 */
  readonly targetNoise?: number
  /** The bound of the noise on target actions, which is clipped to plus and minus this. @default 0.5 */
  readonly targetNoiseClip?: number
  /** The number of updates of the critics for each update of the actor. @default 2 */
  readonly policyDelay?: number
}

export const deterministicFields = {
  ...Learner.replayFields,
  ...Model.networkFields,
  noiseRepeat: Fields.withDefault(Fields.bounded("count"), 1),
  activation: Fields.withDefault(Schema.Literals(["tanh", "relu"]), "relu"),
  learningRate: Fields.withDefault(Learner.learningRateSetting, 1e-3),
  tau: Fields.withDefault(Fields.fraction, 0.005),
  noiseType: Fields.withDefault(Schema.Literals(["normal", "ornstein-uhlenbeck"]), "normal"),
  explorationNoise: Fields.withDefault(Learner.scheduled(Fields.nonNegative), 0.1),
  warmUpNoise: Fields.withDefault(Schema.Boolean, false),
  criticLoss: Fields.withDefault(Schema.NullOr(Fields.code<Learner.OwnReplayLoss<Learner.CriticOutputs>>()), null),
  actorLoss: Fields.withDefault(Schema.NullOr(Fields.code<Learner.OwnReplayLoss<Learner.ActorOutputs>>()), null),
}

export const Td3Config = Schema.Struct({
  ...deterministicFields,
  critics: Fields.withDefault(Fields.bounded("critics"), 2),
  targetNoise: Fields.withDefault(Fields.nonNegative, 0.2),
  targetNoiseClip: Fields.withDefault(Fields.nonNegative, 0.5),
  policyDelay: Fields.withDefault(Fields.bounded("count"), 2),
})
export type Td3Config = typeof Td3Config.Type

// --- Networks ---

/** Makes the networks: an actor that outputs one action for each observation, and the critics. */
const networks = (config: Td3Config, { observationSpace }: Algorithm.Task, actionSpace: Space.Box) => {
  const size = Space.sizeOf(actionSpace)
  const body = Model.trunk("actor", observationSpace, config, Model.networkFor(config, "actor"))
  const head = Layers.linear(`actor.${body.depth}`, body.outputs, size, Initialisers.orthogonal(0.01))
  return {
    actionSize: size,
    parameters: { ...body.parameters, ...head.parameters },
    policy: (weights: Model.Weights, observations: Graph.Tensor): Graph.Tensor =>
      tanh(head.apply(weights, body.apply(weights, observations))),
    critics: Model.critics(config.critics, observationSpace, actionSpace, config),
    scale: Model.scaledActions(actionSpace),
  }
}
type Td3Networks = ReturnType<typeof networks>

// --- Learner, which `make` below sets up for a task: acting and replay ---

/** Makes the learner. `Ddpg` makes its own with the same function, under its own name. */
export const setup = Effect.fnUntraced(function* (config: Td3Config, task: Algorithm.Task, name = "td3") {
  const actionSpace = yield* Learner.needsBoundedBox(name, task)
  const nets = yield* Learner.build(() => networks(config, task, actionSpace))
  const { actionSize, policy, scale } = nets
  const isProcess = config.noiseType === "ornstein-uhlenbeck"
  const changes = typeof config.explorationNoise !== "number"
  const deviation = Learner.scheduleOf(config.explorationNoise)
  const actor: Model.Actor = {
    parameters: nets.parameters,
    dense: Model.denseLayers("actor", task.observationSpace, config, "tanh"),
    // Two uniform numbers make one normal number.
    noiseSize: isProcess ? 0 : 2 * actionSize,
    processSize: isProcess ? actionSize : 0,
    memorySize: 0,
    keeps: [],
    act: ({ weights, observations, noise, exploration, process }) => {
      const deviation = changes ? exploration : config.explorationNoise
      const added = mul(process ?? Distributions.normalFromUniform(noise), deviation)
      return { actions: scale.toEnv(clip(add(policy(weights, observations), added), -1, 1)), kept: {} }
    },
    greedy: ({ weights, observations }) => ({ actions: scale.toEnv(policy(weights, observations)) }),
  }
  const experience = Learner.replayExperience({
    name,
    task,
    config,
    actor,
    networks: { critic: nets.critics.parameters },
    ...(changes ? { exploration: deviation } : {}),
    ...(config.warmUpNoise ? { warmUpNoise: deviation } : {}),
  })
  return yield* Learner.replayLearner(Learner.withTargets(experience, ["actor", "critic"]), {
    learningRates: { learningRate: config.learningRate },
    noiseSize: config.targetNoise === 0 ? 0 : 2 * actionSize,
    update: (learning) => update(config, nets, learning),
  })
})

// --- Targets and update ---

/** Describes a gradient step on a batch, as in Algorithm 1 of the paper; actor and target networks learn less often. */
const update = (
  config: Td3Config,
  { policy, critics, scale }: Td3Networks,
  { batch, networks, targets, learningRates }: Learner.Learning<"critic", "actor" | "critic", "learningRate">,
): Learner.Update => {
  const { observations, actions, rewards, nextObservations, discounts } = batch
  const { maxGradNorm, targetNoise, targetNoiseClip, tau, optimiser } = config
  const options = { learningRate: learningRates.learningRate, maxGradNorm, optimiser }
  // Losses of the user's own read and return actions within the env's bounds.
  const act = (at: Graph.Tensor): Graph.Tensor => scale.toEnv(policy(networks.actor.weights, at))

  // Target: y = r + γ min Q′(s′, a′), with the target networks Q′ and μ′, and a′ = μ′(s′) plus clipped noise.
  const action = policy(targets.actor.weights, nextObservations)
  const nextAction =
    targetNoise === 0
      ? action
      : Losses.smoothedAction({
          action,
          noise: Distributions.normalFromUniform(batch.noise),
          deviation: targetNoise,
          bound: targetNoiseClip,
        })
  const q_t = critics.apply(targets.critic.weights, nextObservations, nextAction)
  const target = Losses.clippedDoubleQTarget({ r_t: rewards, discount_t: discounts, q_t })

  // Critics: E[(Q₁ − y)² + (Q₂ − y)²].
  const q_tm1 = critics.apply(networks.critic.weights, observations, scale.fromEnv(actions))
  const criticLoss = Losses.criticLoss({ q_tm1, target })
  const critic = Learner.chosenLoss("critic_loss", config.criticLoss, batch, {
    loss: criticLoss,
    metrics: { "losses/critic_loss": criticLoss, "losses/q_values": mean(q_tm1[0]) },
    values: q_tm1,
    target,
    evaluate: (at, taken) => critics.apply(networks.critic.weights, at, scale.fromEnv(taken)),
    act: (at) => stopGradient(act(at)),
  })
  const criticStep = Learner.gradientStep(networks.critic, critic.loss, options)

  // Actor: −E[Q₁(s, μ(s))], with the critic after its own gradient step.
  const criticWeights = networks.critic.layout.tensorsOf(criticStep.next)
  const chosen = policy(networks.actor.weights, observations)
  const values = critics.apply(criticWeights, observations, chosen)
  const actorLoss = Losses.deterministicPolicyLoss(values[0])
  const actor = Learner.chosenLoss("actor_loss", config.actorLoss, batch, {
    loss: actorLoss,
    metrics: { "losses/actor_loss": actorLoss },
    actions: scale.toEnv(chosen),
    values,
    evaluate: (at, taken) => critics.apply(criticWeights, at, scale.fromEnv(taken)),
    act,
  })
  const actorStep = Learner.gradientStep(networks.actor, actor.loss, options)

  return {
    states: {
      ...criticStep.states,
      ...Learner.everyNth(config.policyDelay, "updates", {
        ...actorStep.states,
        ...Learner.polyak(targets.actor, actorStep.next, tau),
        ...Learner.polyak(targets.critic, criticStep.next, tau),
      }),
    },
    metrics: { ...critic.metrics, ...actor.metrics },
  }
}

/**
 * Makes TD3; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: Pendulum.env, numEnvs: 1, algorithm: Td3.make({ batchSize: 128 }), totalSteps: 20_000 })
 * ```
 */
export const make: Algorithm.Make<Td3Options> = Algorithm.define({
  name: "td3",
  config: Td3Config,
  setup: (config, task) => setup(config, task),
}).make
