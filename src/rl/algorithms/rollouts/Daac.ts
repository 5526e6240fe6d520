/**
 * Decoupled advantage actor-critic (Raileanu and Fergus 2021, arXiv:2102.10330). The policy has its own network and
 * learns in one pass over each rollout; the critic has another network and learns in many passes. The policy's network
 * also learns to predict advantages, because these depend less on the look of a level of the env than values do.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import * as Fields from "../../../base/config/fields.ts"
import * as Initialisers from "../../../tensor/graph/initialisers.ts"
import * as Layers from "../../../tensor/graph/layers.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/onPolicy.ts"
import * as Losses from "../../losses/policyGradient.ts"
import * as Model from "../../model/Model.ts"
import type { Networks } from "../../model/network/layers.ts"
import { type ClippingOptions, ppoFields, ppoPhase, ppoPolicyLoss } from "./Ppo.ts"

const { concat, mul, reshape } = Graph

// --- Config: `DaacOptions` are the settings in code; `DaacConfig` checks them and fills in the defaults ---

export interface DaacOptions extends ClippingOptions, Learner.LearningOptions {
  /**
   * The network in place of `hidden`, `activation` and `convolutions`: layers of `Network`. Actor and critic each have one of
   * their own; `{ actor, critic }` gives them different ones. null leaves the choice to the algorithm. @default null
   */
  readonly network?: Networks | null
  /** The learning rate of Adam. @default 0.0005 */
  readonly learningRate?: Learner.Scheduled
  /** The number of passes over each rollout in which the policy learns. @default 1 */
  readonly epochs?: number
  /** The number of minibatches that a rollout is shuffled into, in each pass. @default 8 */
  readonly minibatches?: number
  /** The number of passes over each rollout in which the critic learns. @default 9 */
  readonly valueEpochs?: number
  /** The weight, in the policy's loss, of the error of its predicted advantage. @default 0.25 */
  readonly advantageCoefficient?: number
}

// Settings of PPO are left out: DAAC neither clips nor weights the error of its separate critic, which has a loss of its own;
// its networks share no memory.
const {
  clipValue: _clipValue,
  valueCoefficient: _valueCoefficient,
  loss: _loss,
  lstmAfter: _lstmAfter,
  criticMemory: _criticMemory,
  ...fields
} = ppoFields
export const DaacConfig = Schema.Struct({
  ...fields,
  epochs: Fields.withDefault(Fields.bounded("rounds"), 1),
  minibatches: Fields.withDefault(Fields.bounded("minibatches"), 8),
  valueEpochs: Fields.withDefault(Fields.bounded("rounds"), 9),
  advantageCoefficient: Fields.withDefault(Fields.nonNegative, 0.25),
  learningRate: Fields.withDefault(Learner.learningRateSetting, 5e-4),
})
export type DaacConfig = typeof DaacConfig.Type

// --- Learner, which `make` below sets up for a task: networks, rollout, returns, update ---

type DaacMinibatch = Learner.Minibatch<Learner.ColumnsOf<Model.ActorCriticKept>>

const setup = Effect.fnUntraced(function* (settings: DaacConfig, task: Algorithm.Task) {
  const config = Learner.resolved(settings)
  const { nsteps: steps, noiseRepeat, sequence } = config
  const { actionSpace } = task
  const network = yield* Learner.build(() => Model.actorCritic({ ...task, ...config, separate: true }))
  const advantageHead = Layers.linear(
    "actor.advantage",
    network.featureSize + Model.outputsFor(actionSpace),
    1,
    Initialisers.orthogonal(1),
  )
  const actor = { ...network, parameters: { ...network.parameters, ...advantageHead.parameters } }
  const rollout = Learner.experience({ name: "daac", task, actor, steps, noiseRepeat, sequence, returns: config })

  /** Computes the loss of the policy: PPO's policy loss + c_a E[(Â(s, a) − A)²], where Â is the predicted advantage. */
  const policyLoss = ({ batch, weights, recall, standardised }: DaacMinibatch): Learner.Loss => {
    const evaluation = network.evaluate(weights, batch.observations, recall)
    const main = ppoPolicyLoss(config, batch, evaluation, standardised)
    const inputs = concat([evaluation.actor, Model.asNumbers(actionSpace, batch.actions)], 1)
    const predicted = reshape(advantageHead.apply(weights, inputs), batch.advantages.shape)
    const advantageLoss = Losses.valueLoss({ v_t: predicted, target_t: batch.advantages })
    return Learner.addLosses(main, {
      loss: mul(advantageLoss, config.advantageCoefficient),
      metrics: { "losses/advantage_loss": advantageLoss },
    })
  }
  /** Computes the loss of the critic: E[(V − target)²]. */
  const criticLoss = ({ batch, weights, recall }: DaacMinibatch): Learner.Loss => {
    const { value } = network.evaluate(weights, batch.observations, recall)
    const loss = Losses.valueLoss({ v_t: value, target_t: batch.targets })
    return { loss, metrics: { "losses/value_loss": loss } }
  }
  return Learner.rolloutLearner(rollout, {
    learningRate: Learner.learningRateOf(config),
    phases: [
      { ...ppoPhase(config, policyLoss), name: "policy", learns: (name) => name.startsWith("actor.") },
      {
        ...ppoPhase(config, criticLoss),
        name: "value",
        epochs: config.valueEpochs,
        learns: (name) => name.startsWith("critic."),
      },
    ],
  })
})

/**
 * Makes DAAC; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, algorithm: Daac.make({ valueEpochs: 5 }), totalSteps: 200_000 })
 * ```
 */
export const make: Algorithm.Make<DaacOptions> = Algorithm.define({ name: "daac", config: DaacConfig, setup }).make
