import { Effect, Schema } from "effect"
import { fraction, positive, positiveInt, withDefault } from "../config/fields.ts"
import { add, mean, mul, sub } from "../graph/ops.ts"
import { rmsprop } from "../graph/optimisers.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import type { Batch } from "../learner/Batch.ts"
import { build } from "../learner/build.ts"
import type { Loss } from "../learner/Loss.ts"
import { experience, generalisedAdvantages } from "../learner/rollout/Experience.ts"
import { actorCriticFields, learningRateOf, resolved } from "../learner/rollout/fields.ts"
import { type Minibatch, type Phase, rolloutLearner } from "../learner/rollout/RolloutLearner.ts"
import type { BaseColumns } from "../learner/rollout/Rollout.ts"
import { withMemory } from "../learner/rollout/withMemory.ts"
import * as Losses from "../losses/policyGradient.ts"
import { actorCritic, type Evaluation } from "../model/ActorCritic.ts"
import type { A2cOptions } from "./options/A2c.ts"

/**
 * Advantage actor-critic (Mnih et al. 2016, arXiv:1602.01783), synchronous: one gradient step on each short rollout, with
 * RMSProp. With λ = 1 the advantage is the n-step return minus the value, as in the paper; with `lstm` the network has a
 * memory.
 */

// --- Config ---

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

// --- Networks, rollout, returns, update ---

const setup = Effect.fnUntraced(function* (settings: A2cConfig, task: Task) {
  const config = resolved(settings)
  const network = yield* build(() => actorCritic({ ...task, ...config }))
  const rollout = experience({
    name: "a2c",
    task,
    actor: network,
    steps: config.nsteps,
    noiseRepeat: config.noiseRepeat,
    returns: generalisedAdvantages(config),
  })
  return yield* rolloutLearner(withMemory(rollout, config.sequence), {
    learningRate: learningRateOf(config),
    phases: [
      a2cPhase(config, ({ batch, weights, recall }) =>
        a2cLoss(config, batch, network.evaluate(weights, batch.observations, recall)),
      ),
    ],
  })
})

/** L = −E[A log π] + c_v E[(V − target)²] − c_e H. */
export const a2cLoss = (
  config: A2cConfig,
  { actions, advantages, targets }: Batch<BaseColumns>,
  { distribution, value }: Pick<Evaluation, "distribution" | "value">,
): Loss => {
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

/** One gradient step on the whole rollout, with RMSProp. */
export const a2cPhase = <C>(config: A2cConfig, loss: (minibatch: Minibatch<C>) => Loss): Phase<C> => ({
  name: "update",
  epochs: 1,
  minibatches: 1,
  maxGradNorm: config.maxGradNorm,
  loss,
  optimiser: ({ size, learningRate }) =>
    rmsprop({ size, learningRate, decay: config.rmspropDecay, epsilon: config.rmspropEpsilon }),
})

/**
 * A2C as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, numEnvs: 16, algorithm: A2c.make({ nsteps: 8 }), totalSteps: 500_000 })
 * ```
 */
export const make: (options?: A2cOptions) => Algorithm = define({ name: "a2c", config: A2cConfig, setup }).make
