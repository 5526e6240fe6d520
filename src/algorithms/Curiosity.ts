import { Schema } from "effect"
import { fraction, nonNegative, units, withDefault } from "../config/fields.ts"
import { sizeOf } from "../env/Space.ts"
import { categorical } from "../graph/distributions.ts"
import { mlp } from "../graph/layers.ts"
import { add, concat, mean, mul, neg, square, stopGradient, sub } from "../graph/ops.ts"
import { a2cFields, a2cPhase } from "./A2c.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import type { CuriosityOptions } from "./options/Curiosity.ts"
import { buildThen } from "../learner/build.ts"
import { asNumbers, outputsFor } from "../model/actions.ts"
import { trunk } from "../model/trunk.ts"
import { actorCriticModel } from "../learner/rollout/actorCriticModel.ts"
import type { Bonus } from "../learner/rollout/Bonus.ts"
import { resolved } from "../learner/rollout/fields.ts"
import { rolloutLearner } from "../learner/rollout/RolloutLearner.ts"

/**
 * The intrinsic curiosity module (Pathak et al. 2017, arXiv:1705.05363) on top of A2C. Observations are turned into
 * features from which the action between two of them can be told (so they hold what the agent can influence); the
 * reward is how badly a forward model predicts the next features.
 */
export const CuriosityConfig = Schema.Struct({
  ...a2cFields,
  /** The weight of the curiosity bonus, the forward model's error, that is added to the reward. */
  curiosityCoefficient: withDefault(nonNegative, 0.1),
  /** The share of the forward model's loss in the loss of both models; the inverse model's has the rest. */
  forwardShare: withDefault(fraction, 0.2),
  /** The weight of the loss of both models, compared with the policy's loss. */
  curiosityLossCoefficient: withDefault(nonNegative, 1),
  /** The number of features that an observation is encoded as. */
  featureSize: withDefault(units, 32),
})
export type CuriosityConfig = typeof CuriosityConfig.Type

export const curiosityBonus = (config: CuriosityConfig, { observationSpace, actionSpace }: Task): Bonus => {
  const actions = outputsFor(actionSpace)
  const { featureSize, hidden } = config
  const encoder = trunk("curiosity.encoder", observationSpace, {
    ...config,
    hidden: [...hidden.slice(0, 1), featureSize],
  })
  const inverse = mlp("curiosity.inverse", {
    sizes: [2 * featureSize, ...hidden.slice(0, 1), actions],
    activation: "relu",
  })
  const forward = mlp("curiosity.forward", {
    sizes: [featureSize + actions, ...hidden.slice(0, 1), featureSize],
    activation: "relu",
  })
  const parts = ({ weights, column }: Parameters<Bonus["surprise"]>[0]) => {
    const before = encoder.apply(weights, column("observations"))
    const after = encoder.apply(weights, column("nextObservations"))
    const predicted = forward.apply(
      weights,
      concat([stopGradient(before), asNumbers(actionSpace, column("actions"))], 1),
    )
    // Features are shaped by the inverse model alone: else they would shrink to be predictable.
    const error = mul(mean(square(sub(predicted, stopGradient(after))), 1), 0.5)
    return { before, after, error }
  }
  return {
    parameters: { ...encoder.parameters, ...inverse.parameters, ...forward.parameters },
    surprise: (view) => parts(view).error,
    loss: (batch) => {
      const { before, after, error } = parts(batch)
      const guess = inverse.apply(batch.weights, concat([before, after], 1))
      const taken = batch.column("actions")
      const inverseLoss =
        actionSpace._tag === "Discrete"
          ? neg(mean(categorical(guess).logProbability(taken)))
          : mean(square(sub(guess, taken)))
      const forwardLoss = mean(error)
      const both = add(mul(inverseLoss, 1 - config.forwardShare), mul(forwardLoss, config.forwardShare))
      return {
        loss: mul(both, config.curiosityLossCoefficient),
        metrics: { "losses/inverse_loss": inverseLoss, "losses/forward_loss": forwardLoss },
      }
    },
    columns: { nextObservations: [sizeOf(observationSpace)] },
    share: 1,
    warmUp: 0,
    reward: { kind: "added", coefficient: config.curiosityCoefficient },
  }
}

const setup = (given: CuriosityConfig, task: Task) => {
  const config = resolved(given)
  return buildThen(
    () => ({ model: actorCriticModel({ ...task, ...config }), bonus: curiosityBonus(config, task) }),
    ({ model, bonus }) =>
      rolloutLearner({ name: "curiosity", config, model, bonus, phases: [a2cPhase(config, model)] }, task),
  )
}

/**
 * A curious A2C as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: MountainCar.env, numEnvs: 16, algorithm: Curiosity.make(), totalSteps: 1_000_000 })
 * ```
 */
export const make: (options?: CuriosityOptions) => Algorithm = define({
  name: "curiosity",
  config: CuriosityConfig,
  setup,
}).make
