import { Effect, Schema } from "effect"
import { fraction, nonNegative, units, withDefault } from "../config/fields.ts"
import { mlp } from "../graph/layers.ts"
import { add, concat, mean, mul, stopGradient } from "../graph/ops.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import { build } from "../learner/build.ts"
import { addLosses, type Loss } from "../learner/Loss.ts"
import { experience, generalisedAdvantages } from "../learner/rollout/Experience.ts"
import { learningRateOf, resolved } from "../learner/rollout/fields.ts"
import type { BaseColumns } from "../learner/rollout/Rollout.ts"
import { rolloutLearner } from "../learner/rollout/RolloutLearner.ts"
import { type Bonus, type BonusColumns, type BonusRows, withBonus } from "../learner/rollout/withBonus.ts"
import { withMemory } from "../learner/rollout/withMemory.ts"
import { forwardError, inverseLoss } from "../losses/intrinsicMotivation.ts"
import { actorCritic } from "../model/ActorCritic.ts"
import { asNumbers, outputsFor } from "../model/actions.ts"
import { trunk } from "../model/trunk.ts"
import { a2cFields, a2cLoss, a2cPhase } from "./A2c.ts"
import type { CuriosityOptions } from "./options/Curiosity.ts"

/**
 * The intrinsic curiosity module (Pathak et al. 2017, arXiv:1705.05363) on top of A2C. An encoder turns observations into
 * features from which an inverse model can infer the action between two of them, so that they hold what the agent can
 * influence. The bonus is the error by which a forward model predicts the next features.
 */

// --- Config ---

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

// --- Networks: A2C's, and the three of the bonus ---

type Rows = BonusRows<BaseColumns & BonusColumns>

const curiosityModels = (config: CuriosityConfig, { observationSpace, actionSpace }: Task) => {
  const { featureSize, hidden } = config
  const firstLayer = hidden.slice(0, 1)
  const actionSize = outputsFor(actionSpace)
  const encoder = trunk("curiosity.encoder", observationSpace, { ...config, hidden: [...firstLayer, featureSize] })
  const inverse = mlp("curiosity.inverse", {
    sizes: [2 * featureSize, ...firstLayer, actionSize],
    activation: "relu",
  })
  const forward = mlp("curiosity.forward", {
    sizes: [featureSize + actionSize, ...firstLayer, featureSize],
    activation: "relu",
  })
  /** Features before and after each action, and the forward model's error, [rows]. */
  const evaluate = ({ batch, weights }: Rows) => {
    const features_t = encoder.apply(weights, batch.observations)
    const features_tp1 = encoder.apply(weights, batch.nextObservations)
    const actions = asNumbers(actionSpace, batch.actions)
    const predicted_tp1 = forward.apply(weights, concat([stopGradient(features_t), actions], 1))
    return { features_t, features_tp1, error: forwardError({ predicted_tp1, features_tp1 }) }
  }
  return {
    parameters: { ...encoder.parameters, ...inverse.parameters, ...forward.parameters },
    evaluate,
    /** c ((1 − β) L_inverse + β L_forward) */
    loss: (rows: Rows): Loss => {
      const { features_t, features_tp1, error } = evaluate(rows)
      const inferred = inverse.apply(rows.weights, concat([features_t, features_tp1], 1))
      const inverseError = inverseLoss(inferred, rows.batch.actions)
      const meanForwardError = mean(error)
      const both = add(mul(inverseError, 1 - config.forwardShare), mul(meanForwardError, config.forwardShare))
      return {
        loss: mul(both, config.curiosityLossCoefficient),
        metrics: { "losses/inverse_loss": inverseError, "losses/forward_loss": meanForwardError },
      }
    },
  }
}

// --- Rollout, returns, update ---

const setup = Effect.fnUntraced(function* (settings: CuriosityConfig, task: Task) {
  const config = resolved(settings)
  const network = yield* build(() => actorCritic({ ...task, ...config }))
  const models = yield* build(() => curiosityModels(config, task))
  const plain = experience({
    name: "curiosity",
    task,
    actor: network,
    steps: config.nsteps,
    noiseRepeat: config.noiseRepeat,
    returns: generalisedAdvantages(config),
  })
  const bonus: Bonus<BaseColumns & BonusColumns> = {
    parameters: models.parameters,
    surprise: (rows) => models.evaluate(rows).error,
    reward: { kind: "added", coefficient: config.curiosityCoefficient },
  }
  return yield* rolloutLearner(withBonus(withMemory(plain, config.sequence), bonus), {
    learningRate: learningRateOf(config),
    phases: [
      a2cPhase(config, (minibatch) => {
        const { batch, weights, recall } = minibatch
        const main = a2cLoss(config, batch, network.evaluate(weights, batch.observations, recall))
        return addLosses(main, models.loss(minibatch))
      }),
    ],
  })
})

/**
 * A2C with curiosity as a value, with any of its settings changed.
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
