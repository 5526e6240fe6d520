/**
 * Synchronous advantage actor-critic (Mnih et al. 2016, arXiv:1602.01783): takes one gradient step on each short
 * rollout, with RMSProp. With λ = 1 the advantage is the n-step return minus the value, as in the paper; with `lstm`
 * the network has a memory. Curiosity and UNREAL extend A2C with the fields, the loss and the phase that this file
 * exports.
 */
import * as Schema from "effect/Schema"
import * as Fields from "../../../base/config/fields.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import * as Optimisers from "../../../tensor/graph/optimisers.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/onPolicy.ts"
import * as Losses from "../../losses/policyGradient.ts"
import type * as Model from "../../model/ActorCritic.ts"

const { add, mean, mul, sub } = Graph

// --- Config: `A2cOptions` are the settings in code; `A2cConfig` checks them and fills in the defaults ---

/** The settings that A2C shares with the algorithms that extend it. */
export interface A2cBaseOptions extends Learner.ActorCriticLearningOptions {
  /** The learning rate. @default 0.0007 */
  readonly learningRate?: Learner.Scheduled
  /** The number of env steps that each env takes between two updates. @default 5 */
  readonly nsteps?: number
  /** The λ of the returns: 0 gives one-step targets, 1 gives full returns. @default 1 */
  readonly lambda?: number
  /** The decay rate of RMSProp's running mean of squared gradients: the nearer to 1, the longer its memory. @default 0.99 */
  readonly rmspropDecay?: number
  /** The constant that keeps RMSProp from dividing by zero. @default 0.00001 */
  readonly rmspropEpsilon?: number
  /**
   * A loss of your own in place of A2C's: a function of a rollout and of the network's outputs, which include A2C's
   * loss. Only code can set one; null keeps A2C's. @default null
   */
  readonly loss?: Learner.OwnLoss | null
}

export interface A2cOptions extends A2cBaseOptions, Learner.DeviationOptions {
  /**
   * The number of slices that each rollout is divided into, so that as many processes can compute its gradient: see
   * `ranks`. The results depend on this number, in their last bits, but not on the number of processes. @default 1
   */
  readonly slices?: number
}

export const a2cFields = {
  ...Learner.actorCriticFields,
  learningRate: Fields.withDefault(Learner.learningRateSetting, 7e-4),
  nsteps: Fields.withDefault(Fields.bounded("rolloutSteps"), 5),
  lambda: Fields.withDefault(Fields.fraction, 1),
  rmspropDecay: Fields.withDefault(Fields.fraction, 0.99),
  rmspropEpsilon: Fields.withDefault(Fields.positive, 1e-5),
  loss: Fields.withDefault(Schema.NullOr(Fields.code<Learner.OwnLoss>()), null),
}
const BaseConfig = Schema.Struct(a2cFields)
type BaseConfig = typeof BaseConfig.Type
export const A2cConfig = Schema.Struct({
  ...a2cFields,
  ...Learner.deviationFields,
  slices: Fields.withDefault(Fields.bounded("slices"), 1),
})
export type A2cConfig = typeof A2cConfig.Type

// --- Learner: the loss and the phase; `actorCriticLearner` has the network, the rollout and the returns ---

const setup = (settings: A2cConfig, task: Algorithm.Task) => {
  const config = Learner.resolved(settings)
  return Learner.actorCriticLearner("a2c", config, task, {
    loss: ({ batch }, outputs) => a2cLoss(config, batch, outputs),
    phase: (loss) => a2cPhase(config, loss),
  })
}

/** Computes L = −E[A log π] + c_v E[(V − target)²] − c_e H: advantage A, entropy H, weights c_v and c_e of `config`. */
export const a2cLoss = (
  config: Learner.Resolved<BaseConfig>,
  { actions, advantages, targets }: Learner.Batch<Learner.BaseColumns>,
  { distribution, value }: Pick<Model.Evaluation, "distribution" | "value">,
): Learner.Loss => {
  const policyLoss = Losses.policyGradient({
    logProbability_t: distribution.logProbability(actions),
    advantage_t: advantages,
  })
  const valueLoss = Losses.valueLoss({ v_t: value, target_t: targets })
  const entropy = mean(distribution.entropy())
  return {
    loss: sub(add(policyLoss, mul(valueLoss, config.valueCoefficient)), mul(entropy, config.entropyCoefficient)),
    metrics: { "losses/policy_loss": policyLoss, "losses/value_loss": valueLoss, "losses/entropy": entropy },
  }
}

/** Describes the only phase of the update: one gradient step on the whole rollout, with RMSProp or the config's optimiser. */
export const a2cPhase = <C>(
  config: Learner.Resolved<BaseConfig>,
  loss: (minibatch: Learner.Minibatch<C>) => Learner.Loss,
): Learner.Phase<C> => ({
  name: "update",
  epochs: 1,
  minibatches: 1,
  maxGradNorm: config.maxGradNorm,
  loss,
  scheduledInputs: config.scheduledInputs,
  optimiser: Learner.chosenOptimiser(config, ({ size, learningRate }) =>
    Optimisers.rmsprop({ size, learningRate, decay: config.rmspropDecay, epsilon: config.rmspropEpsilon }),
  ),
})

/**
 * Makes A2C; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, numEnvs: 16, algorithm: A2c.make({ nsteps: 8 }), totalSteps: 500_000 })
 * ```
 */
export const make: Algorithm.Make<A2cOptions> = Algorithm.define({ name: "a2c", config: A2cConfig, setup }).make
