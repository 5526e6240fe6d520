import { Schema } from "effect"
import { fraction, positive, positiveInt, withDefault } from "../config/fields.ts"
import {
  abs,
  add,
  cast,
  clip,
  div,
  exp,
  greater,
  lessEqual,
  maximum,
  mean,
  minimum,
  mul,
  neg,
  sqrt,
  square,
  sub,
} from "../graph/ops.ts"
import { adam } from "../graph/optimisers.ts"
import type { Tensor } from "../graph/Tensor.ts"
import { type ConfiguredAlgorithm, type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import type { PpoOptions } from "./options/Ppo.ts"
import { buildThen } from "../learner/build.ts"
import {
  type ActorCriticModel,
  actorCriticModel,
  type ActorCriticModelOptions,
  type Evaluated,
} from "../learner/rollout/actorCriticModel.ts"
import { actorCriticFields, resolved } from "../learner/rollout/fields.ts"
import type { Loss, Minibatch, Phase } from "../learner/rollout/programs.ts"
import { rolloutLearner } from "../learner/rollout/RolloutLearner.ts"

/**
 * Proximal Policy Optimisation (Schulman et al. 2017, arXiv:1707.06347), with the details that make it work in
 * practice: clipped value loss, advantages normalised per minibatch, orthogonal initialisation, Adam with ε = 1e-5,
 * gradients clipped by their global norm, the learning rate annealed to zero. With `lstm` it remembers, and minibatches
 * are made of whole sequences.
 */
export const ppoFields = {
  ...actorCriticFields,
  /** The learning rate of Adam. */
  learningRate: withDefault(positive, 2.5e-4),
  /** The number of env steps that each env takes between two updates. */
  nsteps: withDefault(positiveInt, 128),
  /** The number of passes over each rollout. */
  epochs: withDefault(positiveInt, 4),
  /** The number of minibatches that a rollout is shuffled into, in each pass. */
  minibatches: withDefault(positiveInt, 4),
  /** The λ of the returns: 0 gives one-step targets, 1 gives full returns. */
  lambda: withDefault(fraction, 0.95),
  /** The clip range: the probability ratio is clipped to 1 ± this. */
  clip: withDefault(positive, 0.2),
  /** Clips the change of the value by the same bound. */
  clipValue: withDefault(Schema.Boolean, true),
  /** Normalises the advantages of each minibatch to mean 0 and standard deviation 1. */
  normalizeAdvantages: withDefault(Schema.Boolean, true),
  /**
   * The KL limit: an update ends at the first minibatch whose approximate KL divergence exceeds 1.5 times this. null
   * sets no limit.
   */
  targetKl: withDefault(Schema.NullOr(positive), null),
  /** The constant that keeps Adam from dividing by zero. */
  adamEpsilon: withDefault(positive, 1e-5),
}
export const PpoConfig = Schema.Struct(ppoFields)
export type PpoConfig = typeof PpoConfig.Type

type Said = Pick<Evaluated, "distribution" | "value">

/** L_clip − c_e H: what becomes of the policy, over one minibatch of which the current weights say what is given. */
export const ppoPolicyLoss = (
  config: Pick<PpoConfig, "clip" | "normalizeAdvantages" | "entropyCoefficient" | "targetKl">,
  batch: Pick<Minibatch, "column">,
  { distribution }: Pick<Said, "distribution">,
): Loss => {
  const actions = batch.column("actions")
  const given = batch.column("advantages")
  const advantages = config.normalizeAdvantages ? standardise(given) : given

  const logRatio = sub(distribution.logProbability(actions), batch.column("logProbs"))
  const ratio = exp(logRatio)
  const clippedRatio = clip(ratio, 1 - config.clip, 1 + config.clip)
  const policyLoss = neg(mean(minimum(mul(ratio, advantages), mul(clippedRatio, advantages))))
  const entropy = mean(distribution.entropy())

  // Schulman's estimate of the divergence, of low variance and never negative: E[(r − 1) − log r].
  const approxKl = mean(sub(sub(ratio, 1), logRatio))
  return {
    loss: sub(policyLoss, mul(entropy, config.entropyCoefficient)),
    metrics: {
      "losses/policy_loss": policyLoss,
      "losses/entropy": entropy,
      "losses/approx_kl": approxKl,
      "losses/clipfrac": mean(cast(greater(abs(sub(ratio, 1)), config.clip), "f32")),
    },
    ...(config.targetKl === null ? {} : { proceed: lessEqual(approxKl, 1.5 * config.targetKl) }),
  }
}

/** L = L_clip + c_v L_value − c_e H. */
export const ppoLoss = (config: PpoConfig, batch: Pick<Minibatch, "column">, said: Said): Loss => {
  const policy = ppoPolicyLoss(config, batch, said)
  const targets = batch.column("targets")
  const error = square(sub(said.value, targets))
  const worst = config.clipValue
    ? maximum(error, clippedError(config, batch.column("values"), said.value, targets))
    : error
  const valueLoss = mul(mean(worst), 0.5)
  return {
    ...policy,
    loss: add(policy.loss, mul(valueLoss, config.valueCoefficient)),
    metrics: { ...policy.metrics, "losses/value_loss": valueLoss },
  }
}

const clippedError = ({ clip: most }: PpoConfig, before: Tensor, value: Tensor, targets: Tensor): Tensor =>
  square(sub(add(before, clip(sub(value, before), -most, most)), targets))

/** (x − mean) / (deviation + 1e-8), with the unbiased deviation. */
const standardise = (x: Tensor): Tensor => {
  const [n] = x.shape
  if (n < 2) return x
  const centred = sub(x, mean(x))
  const variance = mul(mean(square(centred)), n / (n - 1))
  return div(centred, add(sqrt(variance), 1e-8))
}

/** Several epochs of shuffled minibatches with Adam. */
export const ppoPhase = (config: PpoConfig, loss: (batch: Minibatch) => Loss): Phase => ({
  name: "update",
  epochs: config.epochs,
  minibatches: config.minibatches,
  maxGradNorm: config.maxGradNorm,
  loss,
  optimiser: ({ size, learningRate }) => adam({ size, learningRate, epsilon: config.adamEpsilon }),
})

/** PPO for a task, on whatever network the config describes. */
export const ppoLearner = (
  name: string,
  given: PpoConfig & Pick<ActorCriticModelOptions, "planning">,
  task: Task,
): ReturnType<ConfiguredAlgorithm["setup"]> => {
  const config = resolved(given)
  const phaseOf = (model: ActorCriticModel) =>
    ppoPhase(config, (batch) => ppoLoss(config, batch, model.evaluate(batch)))
  return buildThen(
    () => actorCriticModel({ ...task, ...config }),
    (model) => rolloutLearner({ name, config, model, phases: [phaseOf(model)] }, task),
  )
}

/**
 * PPO as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, algorithm: Ppo.make({ learningRate: 1e-3 }), totalSteps: 100_000 })
 * ```
 */
export const make: (options?: PpoOptions) => Algorithm = define({
  name: "ppo",
  config: PpoConfig,
  setup: (config, task) => ppoLearner("ppo", config, task),
}).make
