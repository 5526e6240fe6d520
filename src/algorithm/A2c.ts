import { Schema } from "effect"
import { fraction, positive, positiveInt, withDefault } from "../config/fields.ts"
import { add, mean, mul, neg, square, stopGradient, sub } from "../graph/ops.ts"
import { rmsprop } from "../graph/optimisers.ts"
import { define } from "./Algorithm.ts"
import { type Batch, type Loss, onPolicyFields, onPolicyLearner } from "./OnPolicy.ts"

/**
 * Advantage actor-critic (Mnih et al. 2016, arXiv:1602.01783), synchronous: one gradient step on each short rollout,
 * with RMSProp. With λ = 1 the advantage is the n-step return less the value, as in the paper.
 */
export const A2cConfig = Schema.Struct({
  ...onPolicyFields,
  learningRate: withDefault(positive, 7e-4),
  /** Env steps that each env takes between updates. */
  nsteps: withDefault(positiveInt, 5),
  lambda: withDefault(fraction, 1),
  rmspropDecay: withDefault(fraction, 0.99),
  rmspropEpsilon: withDefault(positive, 1e-5),
})
export type A2cConfig = typeof A2cConfig.Type

/** L = −E[A log π] + c_v E[(V − target)²] − c_e H. */
export const a2cLoss = (config: A2cConfig, { distribution, value, actions, advantages, targets }: Batch): Loss => {
  const policyLoss = neg(mean(mul(distribution.logProbability(actions), stopGradient(advantages))))
  const valueLoss = mean(square(sub(value, targets)))
  const entropy = mean(distribution.entropy())
  return {
    loss: sub(add(policyLoss, mul(valueLoss, config.valueCoefficient)), mul(entropy, config.entropyCoefficient)),
    metrics: { "losses/policy_loss": policyLoss, "losses/value_loss": valueLoss, "losses/entropy": entropy },
  }
}

/**
 * A2C as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, numEnvs: 16, algorithm: A2c.make({ nsteps: 8 }), totalSteps: 500_000 })
 * ```
 */
export const { make } = define({
  name: "a2c",
  config: A2cConfig,
  setup: (config, task) =>
    onPolicyLearner(
      {
        name: "a2c",
        config,
        epochs: 1,
        minibatches: 1,
        loss: (batch) => a2cLoss(config, batch),
        optimiser: ({ size, learningRate }) =>
          rmsprop({ size, learningRate, decay: config.rmspropDecay, epsilon: config.rmspropEpsilon }),
      },
      task,
    ),
})
