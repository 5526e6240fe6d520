/**
 * Soft actor-critic (Haarnoja et al. 2018, arXiv:1812.05905): it has a squashed Gaussian policy whose entropy adds to
 * its return, two critics, of whose values the smaller one counts, and a temperature that keeps the entropy at a
 * target.
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

const { clip, mean, mul, reshape, slice, stopGradient } = Graph

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
  readonly learningRate?: Learner.Scheduled
  /** The learning rate of the critics; null takes the actor's learning rate. @default null */
  readonly criticLearningRate?: Learner.Scheduled | null
  /** The share by which the target critics move towards the critics in each gradient step. @default 0.005 */
  readonly tau?: number
  /**
   * The entropy temperature, which is the weight of the policy's entropy; null learns it, and so does `auto_0.1`, which starts at
   * 0.1. @default null
   */
  readonly alpha?: number | string | null
  /** The initial value of a learned temperature. @default 1 */
  readonly alphaStart?: number
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
  /**
   * A loss of your own for the critics: a function of a batch and of the critics' outputs, which include the
   * algorithm's loss. Only code can set one; null keeps the algorithm's. @default null
   */
  readonly criticLoss?: Learner.OwnReplayLoss<Learner.CriticOutputs> | null
  /**
   * A loss of your own for the actor: a function of a batch and of the actor's outputs, which include the algorithm's
   * loss. Only code can set one; null keeps the algorithm's. @default null
   */
  readonly actorLoss?: Learner.OwnReplayLoss<SacActorOutputs> | null
}

/** The outputs that the user's own loss for the actor gets. */
export interface SacActorOutputs extends Learner.ActorOutputs {
  /** The log π of the drawn actions, of shape [rows]; actions are scaled to −1 … 1 for it. */
  readonly logProbability: Graph.Tensor
  /** Computes the log π of actions that the env got, such as the batch's, at these observations. */
  readonly logProbabilityOf: (observations: Graph.Tensor, actions: Graph.Tensor) => Graph.Tensor
  /** The temperature, the weight of the entropy. */
  readonly alpha: Graph.Tensor | number
}

export const sacFields = {
  ...Learner.replayFields,
  ...Model.networkFields,
  noiseRepeat: Fields.withDefault(Fields.bounded("count"), 1),
  activation: Fields.withDefault(Schema.Literals(["tanh", "relu"]), "relu"),
  learningRate: Fields.withDefault(Learner.learningRateSetting, 3e-4),
  criticLearningRate: Fields.withDefault(Schema.NullOr(Learner.learningRateSetting), null),
  tau: Fields.withDefault(Fields.fraction, 0.005),
  ...Learner.temperatureFields,
  targetEntropy: Fields.withDefault(Schema.NullOr(Fields.real), null),
  sde: Fields.withDefault(Schema.NullOr(Learner.ReplaySde), null),
  logStdInit: Fields.withDefault(Fields.real, -3),
  criticLoss: Fields.withDefault(Schema.NullOr(Fields.code<Learner.OwnReplayLoss<Learner.CriticOutputs>>()), null),
  actorLoss: Fields.withDefault(Schema.NullOr(Fields.code<Learner.OwnReplayLoss<SacActorOutputs>>()), null),
}

export const SacConfig = Schema.Struct(sacFields)
export type SacConfig = typeof SacConfig.Type

// --- Networks ---

// The bounds of log σ, the logarithm of the policy's standard deviation, as in the code of the paper's authors.
const lowestLogDeviation = -20
const highestLogDeviation = 2
/** The largest |μ| with state-dependent exploration, as in Stable-Baselines3: it keeps tanh μ from saturating. */
const largestMean = 2

/** The critics of SAC or a relative: their parameters, values and loss. Actions are scaled to −1 … 1. */
export interface SoftCritics {
  readonly parameters: Model.Declarations
  /** Computes the outputs of each critic for actions. */
  readonly apply: Model.Critics["apply"]
  /** Computes the values of actions for the actor's loss, which uses the smallest of them. */
  readonly values: Model.Critics["apply"]
  /** Computes the loss of the critics, their outputs for the batch's actions, and the target for these outputs. */
  readonly loss: (at: CriticInputs) => Pick<Learner.CriticOutputs, "loss" | "values" | "target">
}

/** The inputs of the loss of the critics. */
export interface CriticInputs {
  readonly batch: Learner.Batch<Learner.ReplayColumns>
  /** The batch's actions, scaled to −1 … 1. */
  readonly actions: Graph.Tensor
  /** An action that the policy draws at each next observation, and its log π. */
  readonly next: { readonly action: Graph.Tensor; readonly logProbability: Graph.Tensor }
  readonly weights: Model.Weights
  readonly targetWeights: Model.Weights
  readonly alpha: Graph.Tensor | number
}

/** A function that makes critics. */
export type MakeCritics = (observationSpace: Space.RowSpace, actionSpace: Space.Box) => SoftCritics

/** Returns the function that makes SAC's own critics: two, of whose values the smaller one counts. */
const twinCritics =
  (config: SacConfig): MakeCritics =>
  (observationSpace, actionSpace) => {
    const critics = Model.critics(2, observationSpace, actionSpace, config)
    return {
      parameters: critics.parameters,
      apply: critics.apply,
      values: critics.apply,
      // Target: y = r + γ (min Q′(s′, a′) − α log π(a′ | s′)), with the target critics Q′, and a′ drawn from the policy.
      // `discounts` has γ, and 0 where the episode terminated; truncated episodes keep the value of the final observation.
      // Critics: ½ E[(Q₁ − y)² + (Q₂ − y)²].
      loss: ({ batch, actions, next, weights, targetWeights, alpha }) => {
        const target = Losses.softTarget({
          r_t: batch.rewards,
          discount_t: batch.discounts,
          q_t: critics.apply(targetWeights, batch.nextObservations, next.action),
          logProbability_t: next.logProbability,
          alpha,
        })
        const q_tm1 = critics.apply(weights, batch.observations, actions)
        return { loss: mul(Losses.criticLoss({ q_tm1, target }), 0.5), values: q_tm1, target }
      },
    }
  }

/** Makes the networks: an actor that outputs a squashed Gaussian for each observation, and the critics. */
const networks = (
  config: SacConfig,
  { observationSpace }: Algorithm.Task,
  actionSpace: Space.Box,
  makeCritics: MakeCritics,
) => {
  const size = Space.sizeOf(actionSpace)
  const body = Model.trunk("actor", observationSpace, config, Model.networkFor(config, "actor"))
  const center = Layers.linear("actor.mean", body.outputs, size, Initialisers.orthogonal(0.01))
  const { parameters, gaussian, noiseSize } = deviations(config, body.outputs, size)
  return {
    actionSize: size,
    /** The number of uniform numbers that an action takes. */
    noiseSize,
    parameters: { ...body.parameters, ...center.parameters, ...parameters },
    policy: (weights: Model.Weights, observations: Graph.Tensor): Distributions.SquashedGaussian => {
      const features = body.apply(weights, observations)
      return Distributions.squashed(gaussian(weights, features, center.apply(weights, features)))
    },
    critics: makeCritics(observationSpace, actionSpace),
    scale: Model.scaledActions(actionSpace),
  }
}
type SacNetworks = ReturnType<typeof networks>

/** The networks with which `squashedExperience` acts, and the critics, which learn too. */
interface SquashedNetworks {
  /** The number of random numbers that an action takes. */
  readonly noiseSize: number
  readonly parameters: Model.Declarations
  readonly policy: (weights: Model.Weights, observations: Graph.Tensor) => Distributions.SquashedGaussian
  readonly scale: ReturnType<typeof Model.scaledActions>
  readonly criticParameters: Model.Declarations
  readonly dense?: Model.Actor["dense"]
}

/** Makes the experience of a policy that draws squashed actions, as those of SAC, TQC and CrossQ do. */
export const squashedExperience = (
  name: string,
  config: Learner.ReplayConfig & Pick<SacConfig, "noiseRepeat" | "sde">,
  task: Algorithm.Task,
  { criticParameters, dense, noiseSize, parameters, policy, scale }: SquashedNetworks,
) => {
  const actor: Model.Actor = {
    parameters,
    dense,
    noiseSize,
    memorySize: 0,
    keeps: [],
    act: ({ weights, observations, noise }) => ({
      actions: scale.toEnv(policy(weights, observations).sample(noise)),
      kept: {},
    }),
    greedy: ({ weights, observations }) => {
      const { mode, outputs } = policy(weights, observations)
      return { actions: scale.toEnv(mode()), outputs }
    },
  }
  const { freshNoise, noiseRepeat } = Learner.noiseSharing(config)
  return Learner.replayExperience({
    name,
    task,
    config: { ...config, noiseRepeat },
    actor,
    freshNoise,
    actsAtWarmup: config.sde?.atWarmup ?? false,
    networks: { critic: criticParameters },
  })
}

/**
 * Makes the part of the actor that computes the deviation of actions from μ: a head for log σ, or noise that depends on
 * the state.
 */
export const deviations = (
  { sde, logStdInit }: Pick<SacConfig, "sde" | "logStdInit">,
  features: number,
  size: number,
) => {
  if (sde === null) {
    const head = Layers.linear("actor.logStd", features, size, Initialisers.orthogonal(0.01))
    return {
      parameters: head.parameters,
      noiseSize: 2 * size,
      gaussian: (weights: Model.Weights, rows: Graph.Tensor, center: Graph.Tensor): Distributions.Gaussian =>
        Distributions.diagonalGaussian(
          center,
          clip(head.apply(weights, rows), lowestLogDeviation, highestLogDeviation),
        ),
    }
  }
  const noise = Model.stateDependentNoise("actor.logStd", features, size, { ...sde, logStdInit })
  return {
    parameters: noise.parameters,
    noiseSize: 2 * features * size,
    gaussian: (weights: Model.Weights, rows: Graph.Tensor, center: Graph.Tensor): Distributions.Gaussian =>
      Distributions.stateDependentGaussian(clip(center, -largestMean, largestMean), {
        features: rows,
        deviation: noise.deviation(weights),
      }),
  }
}

/** Describes the actor as dense layers, for export as C; undefined if it has others. The last outputs μ, then log σ. */
const denseActor = (config: SacConfig, space: Space.RowSpace): Model.DensePolicy | undefined => {
  const dense = Model.denseLayers("actor", space, config)
  if (dense === undefined || config.sde !== null) return undefined
  const last = { names: ["actor.mean", "actor.logStd"], activation: "identity" } as const
  return { layers: [...dense.layers.slice(0, -1), last], head: "sample_and_squash" }
}

// --- Learner, which `make` below sets up for a task: acting and replay ---

/** Makes the learner. `Tqc` makes its own with the same function, under its own name and with its own critics. */
export const setup = Effect.fnUntraced(function* (
  config: SacConfig,
  task: Algorithm.Task,
  name = "sac",
  makeCritics = twinCritics(config),
) {
  const actionSpace = yield* Learner.needsBoundedBox(name, task)
  const nets = yield* Learner.build(() => networks(config, task, actionSpace, makeCritics))
  yield* Learner.checkSde(name, config, task)
  yield* Learner.checkTemperature(name, config)
  const { noiseSize } = nets
  const dense = denseActor(config, task.observationSpace)
  const experience = squashedExperience(name, config, task, {
    ...nets,
    dense,
    criticParameters: nets.critics.parameters,
  })
  return yield* Learner.replayLearner(Learner.withTargets(experience, ["critic"]), {
    learningRates: {
      learningRate: config.learningRate,
      criticLearningRate: config.criticLearningRate ?? config.learningRate,
    },
    // Each transition needs one action for its target and one for the actor's loss; `sde` has one matrix for all of them.
    noiseSize: config.sde === null ? 2 * noiseSize : Math.ceil(noiseSize / config.batchSize),
    update: (learning) => update(config, nets, learning),
  })
})

// --- Targets and update ---

/** Describes a gradient step on a batch, Algorithm 1 of the paper: critics, actor, temperature, target critics. */
const update = (
  config: SacConfig,
  { actionSize, noiseSize, policy, critics, scale }: SacNetworks,
  learning: Learner.Learning<"critic", "critic", "learningRate" | "criticLearningRate">,
): Learner.Update => {
  const { batch, networks, targets, learningRates } = learning
  const { observations, actions, nextObservations, noise } = batch
  const [rows] = noise.shape
  // `noise` has the numbers for two actions in each row: action 0 is for the target, action 1 for the actor's loss.
  const noiseOf = (action: 0 | 1): Graph.Tensor =>
    config.sde === null
      ? slice(noise, [0, action * noiseSize], [rows, noiseSize])
      : slice(reshape(noise, [1, -1]), [0, 0], [1, noiseSize])
  const act = (at: Graph.Tensor): Graph.Tensor => scale.toEnv(policy(networks.actor.weights, at).mode())
  return Learner.softUpdate(learning, config, {
    // The learned temperature keeps the policy's entropy near this value.
    targetEntropy: config.targetEntropy ?? -actionSize,
    criticLearningRate: learningRates.criticLearningRate,

    critic: (alpha) => {
      const nextPolicy = policy(networks.actor.weights, nextObservations)
      const next = nextPolicy.sampleBoth(noiseOf(0))
      const weights = networks.critic.weights
      const { loss, values, target } = critics.loss({
        batch,
        actions: scale.fromEnv(actions),
        next: { action: next.action, logProbability: nextPolicy.logProbabilityOfRaw(next.raw) },
        weights,
        targetWeights: targets.critic.weights,
        alpha,
      })
      return Learner.chosenLoss("critic_loss", config.criticLoss, batch, {
        loss,
        metrics: { "losses/critic_loss": loss, "losses/q_values": mean(values[0]) },
        values,
        target,
        evaluate: (at, taken) => critics.apply(weights, at, scale.fromEnv(taken)),
        act: (at) => stopGradient(act(at)),
      })
    },

    // Actor: E[α log π(a | s) − min Q(s, a)], with the critics after their own gradient step.
    actor: (alpha, criticWeights) => {
      const currentPolicy = policy(networks.actor.weights, observations)
      const current = currentPolicy.sampleBoth(noiseOf(1))
      const logProbability = currentPolicy.logProbabilityOfRaw(current.raw)
      const q = critics.values(criticWeights, observations, current.action)
      const loss = Losses.softPolicyLoss({ q, logProbability, alpha })
      const chosen = Learner.chosenLoss("actor_loss", config.actorLoss, batch, {
        loss,
        metrics: { "losses/actor_loss": loss },
        actions: scale.toEnv(current.action),
        values: q,
        logProbability,
        alpha,
        evaluate: (at, taken) => critics.values(criticWeights, at, scale.fromEnv(taken)),
        act,
        logProbabilityOf: (at, taken) => policy(networks.actor.weights, at).logProbability(scale.fromEnv(taken)),
      })
      return { ...chosen, logProbability }
    },
  })
}

/**
 * Makes SAC; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: Pendulum.env, numEnvs: 1, algorithm: Sac.make({ learningRate: 1e-3 }), totalSteps: 20_000 })
 * ```
 */
export const make: Algorithm.Make<SacOptions> = Algorithm.define({
  name: "sac",
  config: SacConfig,
  setup: (config, task) => setup(config, task),
}).make
