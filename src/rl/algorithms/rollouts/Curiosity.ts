/**
 * The intrinsic curiosity module (Pathak et al. 2017, arXiv:1705.05363) on top of A2C. An encoder turns observations
 * into features. It learns with an inverse model, which infers the action from the features before and after it, so the
 * features describe what the agent can influence. A forward model predicts the next features from the features and the
 * action; its error is the bonus, a reward for surprising transitions.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import * as Fields from "../../../base/config/fields.ts"
import * as Layers from "../../../tensor/graph/layers.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/withFeatures.ts"
import * as Losses from "../../losses/Losses.ts"
import * as Model from "../../model/Model.ts"
import { a2cFields, type A2cBaseOptions, a2cLoss, a2cPhase } from "./A2c.ts"

const { add, concat, mean, mul, stopGradient } = Graph

// --- Config: `CuriosityOptions` are the settings in code; `CuriosityConfig` checks them and fills in the defaults ---

export interface CuriosityOptions extends A2cBaseOptions {
  /** The weight of the curiosity bonus, the forward model's error, that is added to the reward. @default 0.1 */
  readonly curiosityCoefficient?: number
  /** The share of the forward model's loss in the loss of both models; the rest is the inverse model's. @default 0.2 */
  readonly forwardShare?: number
  /** The weight of the loss of both models in the whole loss. @default 1 */
  readonly curiosityLossCoefficient?: number
  /** The number of features that an observation is encoded as. @default 32 */
  readonly featureSize?: number
}

export const CuriosityConfig = Schema.Struct({
  ...a2cFields,
  curiosityCoefficient: Fields.withDefault(Fields.nonNegative, 0.1),
  forwardShare: Fields.withDefault(Fields.fraction, 0.2),
  curiosityLossCoefficient: Fields.withDefault(Fields.nonNegative, 1),
  featureSize: Fields.withDefault(Fields.units, 32),
})
export type CuriosityConfig = typeof CuriosityConfig.Type

// --- Networks: the actor and critic of A2C, and the encoder and the two models of the bonus ---

type CuriosityRows = Learner.BonusRows<Learner.BaseColumns & Learner.BonusColumns>

/** Makes the encoder and the two models: their parameters, the forward model's error, and the loss. */
const curiosityModels = (
  config: Learner.Resolved<CuriosityConfig>,
  { observationSpace, actionSpace }: Algorithm.Task,
) => {
  const { featureSize, hidden } = config
  const firstLayer = hidden.slice(0, 1)
  const actionSize = Model.outputsFor(actionSpace)
  const encoder = Model.trunk("curiosity.encoder", observationSpace, {
    ...config,
    hidden: [...firstLayer, featureSize],
  })
  const inverse = Layers.mlp("curiosity.inverse", {
    sizes: [2 * featureSize, ...firstLayer, actionSize],
    activation: "relu",
  })
  const forward = Layers.mlp("curiosity.forward", {
    sizes: [featureSize + actionSize, ...firstLayer, featureSize],
    activation: "relu",
  })
  /** Computes the features before and after each action, and the forward model's error, of shape [rows]. */
  const evaluate = ({ batch, weights }: CuriosityRows) => {
    const features_t = encoder.apply(weights, batch.observations)
    const features_tp1 = encoder.apply(weights, batch.nextObservations)
    const actions = Model.asNumbers(actionSpace, batch.actions)
    const predicted_tp1 = forward.apply(weights, concat([stopGradient(features_t), actions], 1))
    return { features_t, features_tp1, error: Losses.forwardError({ predicted_tp1, features_tp1 }) }
  }
  return {
    parameters: { ...encoder.parameters, ...inverse.parameters, ...forward.parameters },
    evaluate,
    /** Computes the loss of both models: c ((1 − β) L_inverse + β L_forward), with the forward share β. */
    loss: (rows: CuriosityRows): Learner.Loss => {
      const { features_t, features_tp1, error } = evaluate(rows)
      const inferred = inverse.apply(rows.weights, concat([features_t, features_tp1], 1))
      const isSimple = actionSpace._tag === "Discrete" || actionSpace._tag === "Box"
      const inverseError = isSimple
        ? Losses.inverseLoss(inferred, rows.batch.actions)
        : Losses.behaviourCloning(Model.policyOver(actionSpace, inferred).logProbability(rows.batch.actions))
      const meanForwardError = mean(error)
      const both = add(mul(inverseError, 1 - config.forwardShare), mul(meanForwardError, config.forwardShare))
      return {
        loss: mul(both, config.curiosityLossCoefficient),
        metrics: { "losses/inverse_loss": inverseError, "losses/forward_loss": meanForwardError },
      }
    },
  }
}

// --- Learner, which `make` below sets up for a task: rollout, returns, update ---

const setup = Effect.fnUntraced(function* (settings: CuriosityConfig, task: Algorithm.Task) {
  const config = Learner.resolved(settings)
  const { nsteps: steps, noiseRepeat, sequence } = config
  yield* Learner.checkMemory("curiosity", config)
  const network = yield* Learner.build(() => Model.actorCritic({ ...task, ...config }))
  const models = yield* Learner.build(() => curiosityModels(config, task))
  const own = yield* Learner.build(() => Learner.applied(config.loss, network, task))
  const plain = own.experience(
    Learner.experience({ name: "curiosity", task, actor: network, steps, noiseRepeat, sequence, returns: config }),
  )
  const bonus: Learner.Bonus<Learner.BaseColumns & Learner.BonusColumns> = {
    parameters: models.parameters,
    surprise: (rows) => models.evaluate(rows).error,
    reward: { kind: "added", coefficient: config.curiosityCoefficient },
  }
  return Learner.rolloutLearner(Learner.withBonus(plain, bonus), {
    learningRate: Learner.learningRateOf(config),
    phases: [
      a2cPhase(config, (minibatch) => {
        const { batch, weights, recall } = minibatch
        const outputs = network.evaluate(weights, batch.observations, recall)
        const main = own.loss(minibatch, a2cLoss(config, batch, outputs), outputs)
        return Learner.addLosses(main, models.loss(minibatch))
      }),
    ],
  })
})

/**
 * Makes A2C with curiosity; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: MountainCar.env, numEnvs: 16, algorithm: Curiosity.make(), totalSteps: 1_000_000 })
 * ```
 */
export const make: Algorithm.Make<CuriosityOptions> = Algorithm.define({
  name: "curiosity",
  config: CuriosityConfig,
  setup,
}).make
