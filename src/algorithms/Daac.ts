import { Effect, Schema } from "effect"
import { fraction, nonNegative, positive, positiveInt, withDefault } from "../config/fields.ts"
import { orthogonal } from "../graph/initialisers.ts"
import { linear } from "../graph/layers.ts"
import { concat, mul, reshape } from "../graph/ops.ts"
import { adam } from "../graph/optimisers.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import { build } from "../learner/build.ts"
import { addLosses, type Loss } from "../learner/Loss.ts"
import { type ColumnsOf, experience, generalisedAdvantages } from "../learner/rollout/Experience.ts"
import { learningRateOf, resolved } from "../learner/rollout/fields.ts"
import { rolloutLearner } from "../learner/rollout/RolloutLearner.ts"
import type { Minibatch, Phase } from "../learner/rollout/update.ts"
import { withMemory } from "../learner/rollout/withMemory.ts"
import * as Losses from "../losses/policyGradient.ts"
import { asNumbers, outputsFor } from "../model/actions.ts"
import { actorCritic, type ActorCriticKept } from "../model/ActorCritic.ts"
import type { DaacOptions } from "./options/Daac.ts"
import { ppoFields, ppoPolicyLoss } from "./Ppo.ts"

/**
 * Decoupled advantage actor-critic (Raileanu and Fergus 2021, arXiv:2102.10330): the policy has a network of its own,
 * which also predicts advantages, as they say less about the looks of a level than values do, and learns in one pass; the
 * critic has another network, and learns in many.
 */

// --- Config ---

// The critic has its own weights and its own phase, in which its error is neither clipped nor weighted.
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

// --- Networks, rollout, returns, update ---

type Rows = Minibatch<ColumnsOf<ActorCriticKept>>

const setup = Effect.fnUntraced(function* (settings: DaacConfig, task: Task) {
  const config = resolved(settings)
  const { actionSpace } = task
  const network = yield* build(() => actorCritic({ ...task, ...config, separate: true }))
  const advantageHead = linear("actor.advantage", network.featureSize + outputsFor(actionSpace), 1, orthogonal(1))
  const rollout = experience({
    name: "daac",
    task,
    actor: { ...network, parameters: { ...network.parameters, ...advantageHead.parameters } },
    steps: config.nsteps,
    noiseRepeat: config.noiseRepeat,
    returns: generalisedAdvantages(config),
  })

  /** L_clip − c_e H + c_a E[(Â(s, a) − A)²], where the policy's network predicts the advantage Â. */
  const policyLoss = ({ batch, weights, recall }: Rows): Loss => {
    const evaluation = network.evaluate(weights, batch.observations, recall)
    const main = ppoPolicyLoss(config, batch, evaluation)
    const inputs = concat([evaluation.actor, asNumbers(actionSpace, batch.actions)], 1)
    const predicted = reshape(advantageHead.apply(weights, inputs), batch.advantages.shape)
    const advantageLoss = Losses.valueLoss({ v_t: predicted, target_t: batch.advantages })
    return addLosses(main, {
      loss: mul(advantageLoss, config.advantageCoefficient),
      metrics: { "losses/advantage_loss": advantageLoss },
    })
  }
  /** E[(V − target)²] */
  const criticLoss = ({ batch, weights, recall }: Rows): Loss => {
    const { value } = network.evaluate(weights, batch.observations, recall)
    const loss = Losses.valueLoss({ v_t: value, target_t: batch.targets })
    return { loss, metrics: { "losses/value_loss": loss } }
  }
  const phase = (name: string, epochs: number, loss: (rows: Rows) => Loss): Phase<ColumnsOf<ActorCriticKept>> => ({
    name,
    epochs,
    minibatches: config.minibatches,
    maxGradNorm: config.maxGradNorm,
    loss,
    optimiser: ({ size, learningRate }) => adam({ size, learningRate, epsilon: config.adamEpsilon }),
  })
  return yield* rolloutLearner(withMemory(rollout, config.sequence), {
    learningRate: learningRateOf(config),
    phases: [phase("policy", config.epochs, policyLoss), phase("value", config.valueEpochs, criticLoss)],
  })
})

/**
 * DAAC as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, algorithm: Daac.make({ valueEpochs: 5 }), totalSteps: 200_000 })
 * ```
 */
export const make: (options?: DaacOptions) => Algorithm = define({ name: "daac", config: DaacConfig, setup }).make
