import { Schema } from "effect"
import { fraction, positive, positiveInt, withDefault } from "../config/fields.ts"
import { add, mean, mul, neg, square, stopGradient, sub } from "../graph/ops.ts"
import { rmsprop } from "../graph/optimisers.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import type { A2cOptions } from "./options/A2c.ts"
import { buildThen } from "../learner/build.ts"
import { type ActorCriticModel, actorCriticModel, type Evaluated } from "../learner/rollout/actorCriticModel.ts"
import { actorCriticFields, resolved } from "../learner/rollout/fields.ts"
import type { Loss, Minibatch, Phase } from "../learner/rollout/programs.ts"
import { rolloutLearner } from "../learner/rollout/RolloutLearner.ts"

/**
 * Advantage actor-critic (Mnih et al. 2016, arXiv:1602.01783), synchronous: one gradient step on each short rollout,
 * with RMSProp. With λ = 1 the advantage is the n-step return less the value, as in the paper; with `lstm`, it remembers.
 */
export const a2cFields = {
  ...actorCriticFields,
  /** The learning rate of RMSProp. */
  learningRate: withDefault(positive, 7e-4),
  /** The number of env steps that each env takes between two updates. */
  nsteps: withDefault(positiveInt, 5),
  /** The λ of the returns: 0 gives one-step targets, 1 gives full returns. */
  lambda: withDefault(fraction, 1),
  /** The decay rate of RMSProp's running mean of squared gradients: the nearer to 1, the longer its memory. */
  rmspropDecay: withDefault(fraction, 0.99),
  /** The constant that keeps RMSProp from dividing by zero. */
  rmspropEpsilon: withDefault(positive, 1e-5),
}
export const A2cConfig = Schema.Struct(a2cFields)
export type A2cConfig = typeof A2cConfig.Type

/** L = −E[A log π] + c_v E[(V − target)²] − c_e H. */
export const a2cLoss = (
  config: A2cConfig,
  batch: Pick<Minibatch, "column">,
  { distribution, value }: Pick<Evaluated, "distribution" | "value">,
): Loss => {
  const advantages = stopGradient(batch.column("advantages"))
  const policyLoss = neg(mean(mul(distribution.logProbability(batch.column("actions")), advantages)))
  const valueLoss = mean(square(sub(value, batch.column("targets"))))
  const entropy = mean(distribution.entropy())
  return {
    loss: sub(add(policyLoss, mul(valueLoss, config.valueCoefficient)), mul(entropy, config.entropyCoefficient)),
    metrics: { "losses/policy_loss": policyLoss, "losses/value_loss": valueLoss, "losses/entropy": entropy },
  }
}

/** One pass over the whole rollout with RMSProp. */
export const a2cPhase = (config: A2cConfig, model: ActorCriticModel): Phase => ({
  name: "update",
  epochs: 1,
  minibatches: 1,
  maxGradNorm: config.maxGradNorm,
  loss: (batch) => a2cLoss(config, batch, model.evaluate(batch)),
  optimiser: ({ size, learningRate }) =>
    rmsprop({ size, learningRate, decay: config.rmspropDecay, epsilon: config.rmspropEpsilon }),
})

const setup = (config: A2cConfig, task: Task) => {
  const chosen = resolved(config)
  return buildThen(
    () => actorCriticModel({ ...task, ...chosen }),
    (model) => rolloutLearner({ name: "a2c", config: chosen, model, phases: [a2cPhase(chosen, model)] }, task),
  )
}

/**
 * A2C as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, numEnvs: 16, algorithm: A2c.make({ nsteps: 8 }), totalSteps: 500_000 })
 * ```
 */
export const make: (options?: A2cOptions) => Algorithm = define({ name: "a2c", config: A2cConfig, setup }).make
