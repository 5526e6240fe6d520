/**
 * Generative adversarial imitation learning (Ho and Ermon 2016, arXiv:1606.03476) on top of PPO. A discriminator learns to tell
 * the steps of demonstrations from those of the policy's own rollouts. The policy is rewarded for steps that look like
 * demonstrated ones; it never sees the env's rewards.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import * as Fields from "../../../base/config/fields.ts"
import * as Space from "../../env/Space.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import * as Optimisers from "../../../tensor/graph/optimisers.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Demonstrations from "../../learner/Demonstrations.ts"
import * as Learner from "../../learner/withFeatures.ts"
import * as Losses from "../../losses/adversarial.ts"
import * as Model from "../../model/Model.ts"
import { type ClippedValueOptions, ppoFields, ppoLoss, ppoPhase } from "../rollouts/Ppo.ts"

const { add, cast, greater, less, mean, mul } = Graph

// --- Config: `GailOptions` are the settings in code; `GailConfig` checks them and fills in the defaults ---

export interface GailOptions extends ClippedValueOptions {
  /**
   * The reward of a step, with the discriminator's probability D that it is the expert's: `positive` is −log(1 − D), which also
   * rewards long episodes; `negative` is log D, which rewards short ones; `logit` is their sum, log D − log(1 − D).
   * @default "positive"
   */
  readonly reward?: Losses.ImitationReward
  /** The sizes of the discriminator's hidden layers. @default [32,32] */
  readonly discriminatorHidden?: ReadonlyArray<number>
  /**
   * The number of passes over each rollout, and over as many demonstrated steps, in which the discriminator learns.
   * @default 1
   */
  readonly discriminatorEpochs?: number
  /** The number of minibatches that the discriminator learns from in each pass. @default 4 */
  readonly discriminatorMinibatches?: number
  /** The discriminator's learning rate as a share of `learningRate`. @default 1 */
  readonly discriminatorLearningRateShare?: number
  /**
   * The weight, in the discriminator's loss, of the mean squared slope of its output at the expert's and the policy's
   * steps. A flatter discriminator gives the policy rewards that it can follow better. @default 0
   */
  readonly gradientPenalty?: number
}

export const GailConfig = Schema.Struct({
  ...ppoFields,
  reward: Fields.withDefault(Schema.Literals(["positive", "negative", "logit"]), "positive"),
  discriminatorHidden: Fields.withDefault(Fields.layers, [32, 32]),
  discriminatorEpochs: Fields.withDefault(Fields.bounded("rounds"), 1),
  discriminatorMinibatches: Fields.withDefault(Fields.bounded("minibatches"), 4),
  discriminatorLearningRateShare: Fields.withDefault(Fields.positive, 1),
  gradientPenalty: Fields.withDefault(Fields.nonNegative, 0),
})
export type GailConfig = typeof GailConfig.Type
type ResolvedGail = Learner.Resolved<GailConfig>

// --- Policy ---

const policyOf = (settings: GailConfig, task: Algorithm.Task): Model.ActorCritic =>
  Model.actorCritic({ ...task, ...Learner.resolved(settings) })

// --- Discriminator ---

type GailColumns = Learner.ColumnsOf<Model.ActorCriticKept> & Learner.BonusColumns & Learner.DemonstrationColumns

/** The prefix of the names of the discriminator's parameters. */
const prefix = "discriminator."

/** Makes the discriminator of observation and action; `logits` has a number per row, which is positive for the expert's steps. */
const discriminator = (
  config: ResolvedGail,
  { observationSpace, actionSpace }: Algorithm.Task,
  demonstrations: Demonstrations.Demonstrations,
) => {
  const actionSize = Model.outputsFor(actionSpace)
  const network = Model.critic("discriminator", observationSpace, Space.box(-1, 1, [actionSize]), {
    ...config,
    hidden: config.discriminatorHidden,
    network: null,
  })
  const standardised = Learner.standardisedBy(demonstrations, observationSpace)
  const isBounded = actionSpace._tag === "Box" && [...actionSpace.low, ...actionSpace.high].every(Number.isFinite)
  const scale = isBounded ? Model.scaledActions(actionSpace) : undefined
  const judge = (weights: Model.Weights, observations: Tensor, actions: Tensor) => {
    // Use the actions as the env got them: unclipped actions of the policy would be easy to tell from the expert's.
    const taken = Model.toEnvAction(actionSpace, actions)
    const inputs = [standardised(observations), Model.asNumbers(actionSpace, scale?.fromEnv(taken) ?? taken)] as const
    return { inputs, logits: network.apply(weights, ...inputs) }
  }
  return { parameters: network.parameters, judge }
}
type Judge = ReturnType<typeof discriminator>["judge"]

// --- Learner, which `make` below sets up for a task: rollout, returns, update ---

/** Returns a function that makes the learner for a config and a task. It imitates these demonstrations. */
const learnFrom = (demonstrations: Demonstrations.Demonstrations) =>
  Effect.fnUntraced(function* (settings: GailConfig, task: Algorithm.Task) {
    yield* Demonstrations.checkFit("gail", demonstrations, task)
    const config = Learner.resolved(settings)
    const { nsteps: steps, noiseRepeat, sequence } = config
    yield* Learner.checkMemory("gail", config)
    const network = yield* Learner.build(() => policyOf(settings, task))
    const { parameters, judge } = yield* Learner.build(() => discriminator(config, task, demonstrations))
    const own = yield* Learner.build(() => Learner.applied(config.loss, network, task))
    const plain = own.experience(
      Learner.experience({ name: "gail", task, actor: network, steps, noiseRepeat, sequence, returns: config }),
    )
    const shown = { ...Learner.withDemonstrations(plain, demonstrations), imitates: true }
    const rollout = Learner.withBonus(shown, {
      parameters,
      learningRateShare: config.discriminatorLearningRateShare,
      surprise: ({ batch, weights }) =>
        Losses.imitationReward(judge(weights, batch.observations, batch.actions).logits, config.reward),
      reward: { kind: "replaced" },
    })
    return Learner.rolloutLearner(rollout, {
      learningRate: Learner.learningRateOf(config),
      phases: [discriminatorPhase(config, judge), policyPhase(config, network, own)],
    })
  })

/**
 * Describes the phase in which the discriminator learns from the rollout, and from one demonstrated step for each row
 * of the rollout.
 */
const discriminatorPhase = (config: ResolvedGail, judge: Judge): Learner.Phase<GailColumns> => ({
  name: "discriminator",
  epochs: config.discriminatorEpochs,
  minibatches: config.discriminatorMinibatches,
  minibatchesKey: "discriminator_minibatches",
  maxGradNorm: config.maxGradNorm,
  learns: (name) => name.startsWith(prefix),
  loss: ({ batch, weights }) => {
    const expert = judge(weights, batch.shownObservations, batch.shownActions)
    const policy = judge(weights, batch.observations, batch.actions)
    const loss = Losses.discriminatorLoss({ expert: expert.logits, policy: policy.logits })
    const slopes = [expert, policy].map(({ logits, inputs }) => Losses.gradientPenalty(logits, inputs))
    return {
      loss: config.gradientPenalty === 0 ? loss : add(loss, mul(add(slopes[0], slopes[1]), config.gradientPenalty)),
      metrics: {
        "losses/discriminator_loss": loss,
        "charts/expert_accuracy": mean(cast(greater(expert.logits, 0), "f32")),
        "charts/policy_accuracy": mean(cast(less(policy.logits, 0), "f32")),
      },
    }
  },
  optimiser: Optimisers.adam,
})

/** Describes the phase in which PPO learns from the discriminator's rewards. */
const policyPhase = (
  config: ResolvedGail,
  network: Model.ActorCritic,
  own: ReturnType<typeof Learner.applied>,
): Learner.Phase<GailColumns> => ({
  ...ppoPhase<GailColumns>(config, (minibatch) => {
    const { batch, weights, recall, standardised } = minibatch
    const outputs = network.evaluate(weights, batch.observations, recall)
    return own.loss(minibatch, ppoLoss(config, batch, outputs, standardised), outputs)
  }),
  learns: (name) => !name.startsWith(prefix),
})

/**
 * Makes GAIL from demonstrations; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, algorithm: Gail.make(demonstrations, { reward: "logit" }), totalSteps: 200_000 })
 * ```
 */
export const make = (demonstrations: Demonstrations.Demonstrations, options: GailOptions = {}): Algorithm.Algorithm =>
  Algorithm.define({ name: "gail", config: GailConfig, setup: learnFrom(demonstrations) }).make(options)

/** GAIL as a run's saved config makes it: it can only play what the run has learned. */
export const onlyPlays = Learner.onlyPlaying("gail", GailConfig, policyOf)
