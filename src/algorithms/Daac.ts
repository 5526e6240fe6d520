import { Schema } from "effect"
import { fraction, nonNegative, positive, positiveInt, withDefault } from "../config/fields.ts"
import { orthogonal } from "../graph/initialisers.ts"
import { linear } from "../graph/layers.ts"
import { add, concat, mean, mul, reshape, square, sub } from "../graph/ops.ts"
import { adam } from "../graph/optimisers.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import type { DaacOptions } from "./options/Daac.ts"
import { buildThen } from "../learner/build.ts"
import { asNumbers, outputsFor } from "../model/actions.ts"
import { ppoFields, ppoPolicyLoss } from "./Ppo.ts"
import { actorCriticModel } from "../learner/rollout/actorCriticModel.ts"
import { resolved } from "../learner/rollout/fields.ts"
import type { Phase } from "../learner/rollout/programs.ts"
import { rolloutLearner } from "../learner/rollout/RolloutLearner.ts"

/**
 * Decoupled advantage actor-critic (Raileanu and Fergus 2021, arXiv:2102.10330): the policy has a network of its own,
 * which also predicts advantages (they say less about the level's looks than values do), and learns in one pass; the
 * critic has another, and learns in many.
 */
// The critic has its own weights and its own phase: nothing is clipped or weighed there.
const { clipValue: _clipValue, valueCoefficient: _valueCoefficient, ...fields } = ppoFields
export const DaacConfig = Schema.Struct({
  ...fields,
  /** The number of passes of the policy over each rollout. */
  epochs: withDefault(positiveInt, 1),
  /** The number of minibatches that a rollout is shuffled into, in each pass. */
  minibatches: withDefault(positiveInt, 8),
  /** The number of passes of the critic over each rollout. */
  valueEpochs: withDefault(positiveInt, 9),
  /** The weight, in the policy's loss, of the error of its predicted advantage. */
  advantageCoefficient: withDefault(nonNegative, 0.25),
  /** The learning rate of Adam. */
  learningRate: withDefault(positive, 5e-4),
  /** The λ of the returns: 0 gives one-step targets, 1 gives full returns. */
  lambda: withDefault(fraction, 0.95),
})
export type DaacConfig = typeof DaacConfig.Type

const setup = (given: DaacConfig, task: Task) => {
  const config = resolved(given)
  const { actionSpace } = task
  const actions = outputsFor(actionSpace)
  return buildThen(
    () => {
      const actor = actorCriticModel({ ...task, ...config, separate: true })
      const advantage = linear("actor.advantage", actor.network.featureSize + actions, 1, orthogonal(1))
      return { model: { ...actor, parameters: { ...actor.parameters, ...advantage.parameters } }, advantage }
    },
    ({ model, advantage }) => {
      const policy: Phase["loss"] = (batch) => {
        const { weights, column, rows } = batch
        const evaluated = model.evaluate(batch)
        const main = ppoPolicyLoss(config, batch, evaluated)
        const numbers = asNumbers(actionSpace, column("actions"))
        const guess = reshape(advantage.apply(weights, concat([evaluated.features.actor, numbers], 1)), [rows])
        const error = mean(square(sub(guess, column("advantages"))))
        return {
          ...main,
          loss: add(main.loss, mul(error, config.advantageCoefficient)),
          metrics: { ...main.metrics, "losses/advantage_loss": error },
        }
      }
      const value: Phase["loss"] = (batch) => {
        const error = mean(square(sub(model.evaluate(batch).value, batch.column("targets"))))
        return { loss: error, metrics: { "losses/value_loss": error } }
      }
      const common = {
        minibatches: config.minibatches,
        maxGradNorm: config.maxGradNorm,
        optimiser: ({ size, learningRate }: Parameters<Phase["optimiser"]>[0]) =>
          adam({ size, learningRate, epsilon: config.adamEpsilon }),
      }
      const phases = [
        { ...common, name: "policy", epochs: config.epochs, loss: policy },
        { ...common, name: "value", epochs: config.valueEpochs, loss: value },
      ]
      return rolloutLearner({ name: "daac", config, model, phases }, task)
    },
  )
}

/**
 * DAAC as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, algorithm: Daac.make({ valueEpochs: 5 }), totalSteps: 200_000 })
 * ```
 */
export const make: (options?: DaacOptions) => Algorithm = define({ name: "daac", config: DaacConfig, setup }).make
