/**
 * Random network distillation (Burda et al. 2018, arXiv:1810.12894) on top of PPO. A predictor network learns to
 * predict the features that a second network, which is never trained, computes from an observation. A large prediction
 * error means that the observation is new, so the error is a bonus: an additional reward. The bonus has its own critic,
 * because it has its own discount and its returns need not end with the episode.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import * as Fields from "../../../base/config/fields.ts"
import * as Initialisers from "../../../tensor/graph/initialisers.ts"
import * as Layers from "../../../tensor/graph/layers.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/withFeatures.ts"
import * as Losses from "../../losses/Losses.ts"
import * as Model from "../../model/Model.ts"
import { ppoFields, type ClippedValueOptions, ppoLoss, ppoPhase } from "./Ppo.ts"

const { mul } = Graph

// --- Config: `RndOptions` are the settings in code; `RndConfig` checks them and fills in the defaults ---

export interface RndOptions extends ClippedValueOptions {
  /** The discount factor of the bonus. @default 0.99 */
  readonly gammaIntrinsic?: number
  /** The weight of the advantages of the env's rewards. @default 2 */
  readonly extrinsicCoefficient?: number
  /** The weight of the advantages of the bonus. @default 1 */
  readonly intrinsicCoefficient?: number
  /** Whether the returns of the bonus end with the episode, as the returns of the env's rewards do. @default false */
  readonly episodic?: boolean
  /**
   * The number of random steps in each env before the first rollout; their observations initialise the normalisation.
   * @default 600
   */
  readonly initObsSteps?: number
  /** The share of rows that the predictor learns from; null is 32 divided by the number of envs, at most 1. @default null */
  readonly predictionShare?: number | null
  /**
   * The predictor's learning rate as a share of `learningRate`. If it is too high, the bonus vanishes too soon. @default 0.1
   */
  readonly predictionLearningRateShare?: number
  /** The number of features of an observation that the predictor predicts. @default 64 */
  readonly predictionSize?: number
}

export const rndFields = {
  ...ppoFields,
  gammaIntrinsic: Fields.withDefault(Fields.fraction, 0.99),
  extrinsicCoefficient: Fields.withDefault(Fields.nonNegative, 2),
  intrinsicCoefficient: Fields.withDefault(Fields.nonNegative, 1),
  episodic: Fields.withDefault(Schema.Boolean, false),
  initObsSteps: Fields.withDefault(Fields.bounded("countOrNone"), 600),
  predictionShare: Fields.withDefault(Schema.NullOr(Fields.fraction), null),
  predictionLearningRateShare: Fields.withDefault(Fields.positive, 0.1),
  predictionSize: Fields.withDefault(Fields.units, 64),
}
export const RndConfig = Schema.Struct(rndFields)
export type RndConfig = typeof RndConfig.Type
type ResolvedRnd = Learner.Resolved<RndConfig>

// --- Networks: the actor and critic of PPO, a second critic, and the two networks of the bonus ---

type RndKept = Model.ActorCriticKept | "bonusValues"
/** The columns that the losses read. */
type RndColumns = Learner.ColumnsOf<RndKept> & Learner.BonusColumns

/**
 * Makes the predictor and the fixed network whose outputs it predicts. With the default `hidden`, the predictor has one
 * more layer, so that it can learn the fixed network exactly. Neither network ends with an activation: a relu output
 * that is always 0 gets no gradient, so its error, and with it the bonus, would never shrink. Inside, networks over
 * vectors use relu, which does not saturate for large inputs.
 */
const rndNetworks = (config: ResolvedRnd, { observationSpace }: Algorithm.Task) => {
  const ofImages = Model.isImage(observationSpace)
  const activation = ofImages ? config.activation : "relu"
  const network = (name: string, hidden: ReadonlyArray<number>) => {
    const body = Model.trunk(name, observationSpace, { ...config, activation, hidden })
    const last = Layers.linear(`${name}.${body.depth}`, body.outputs, config.predictionSize, Initialisers.orthogonal(1))
    return {
      parameters: { ...body.parameters, ...last.parameters },
      apply: (weights: Model.Weights, observations: Tensor) => last.apply(weights, body.apply(weights, observations)),
    }
  }
  return {
    fixed: network("rnd.fixed", ofImages ? [] : config.hidden.slice(0, 1)),
    predictor: network("rnd.predictor", ofImages ? config.hidden.slice(0, 1) : config.hidden),
  }
}

/** Describes the bonus: the prediction's error, a separate reward with its own critic. */
const rndBonus = (config: ResolvedRnd, task: Algorithm.Task) => {
  const { fixed, predictor } = rndNetworks(config, task)
  const surprise = ({ batch, weights, fixed: fixedWeights }: Learner.BonusRows<RndColumns>): Tensor =>
    Losses.distillationError({
      predicted: predictor.apply(weights, batch.normalisedObservations),
      fixed: fixed.apply(fixedWeights, batch.normalisedObservations),
    })
  const bonus: Learner.Bonus<RndColumns> = {
    parameters: predictor.parameters,
    learningRateShare: config.predictionLearningRateShare,
    fixed: fixed.parameters,
    surprise,
    reward: {
      kind: "separate",
      gamma: config.gammaIntrinsic,
      lambda: config.lambda,
      coefficient: config.intrinsicCoefficient,
      extrinsicCoefficient: config.extrinsicCoefficient,
      episodic: config.episodic,
      critic: ({ columns, last, atTruncation }) => ({
        values: columns.bonusValues,
        lastValues: last.bonusValues,
        truncatedValues: atTruncation.bonusValues,
      }),
      predictedShare: config.predictionShare ?? Math.min(1, 32 / task.numEnvs),
      warmUpSteps: config.initObsSteps,
    },
  }
  return bonus
}

// --- Rollout and returns ---

/** Makes the network, the bonus, the user's loss (`own`) and the experience with all of them. `Learner.resolved` must make the config. */
export const rndRollout = (name: string, config: ResolvedRnd, task: Algorithm.Task) => {
  const { nsteps: steps, noiseRepeat, sequence } = config
  const network = Model.actorCritic({ ...task, ...config, critics: ["bonusValues"] })
  const bonus = rndBonus(config, task)
  const own: Learner.AppliedLoss = Learner.applied(config.loss, network, task)
  const plain = Learner.experience({ name, task, actor: network, steps, noiseRepeat, sequence, returns: config })
  return { network, bonus, own, rollout: Learner.withBonus(own.experience(plain), bonus) }
}

// --- Update ---

/**
 * Computes the sum of PPO's loss (or the user's own), c_v ½ E[(V_bonus − target)²], and the mean error of the predictor
 * on a share of the rows.
 */
export const rndLoss = (
  config: ResolvedRnd,
  { network, bonus, own }: Pick<ReturnType<typeof rndRollout>, "network" | "bonus" | "own">,
  minibatch: Learner.Minibatch<RndColumns>,
): Learner.Loss => {
  const { batch, weights, recall, standardised } = minibatch
  const evaluation = network.evaluate(weights, batch.observations, recall)
  const main = own.loss(minibatch, ppoLoss(config, batch, evaluation, standardised), evaluation)
  const bonusError = Losses.valueLoss({ v_t: evaluation.critics.bonusValues, target_t: batch.bonusTargets })
  const bonusLoss = mul(bonusError, 0.5)
  const predictionLoss = Losses.maskedMean(bonus.surprise(minibatch), batch.predicted)
  return Learner.addLosses(
    main,
    { loss: mul(bonusLoss, config.valueCoefficient), metrics: { "losses/intrinsic_value_loss": bonusLoss } },
    { loss: predictionLoss, metrics: { "losses/prediction_loss": predictionLoss } },
  )
}

const setup = Effect.fnUntraced(function* (settings: RndConfig, task: Algorithm.Task) {
  const config = Learner.resolved(settings)
  yield* Learner.checkMemory("rnd", config)
  const { rollout, ...networks } = yield* Learner.build(() => rndRollout("rnd", config, task))
  return Learner.rolloutLearner(rollout, {
    learningRate: Learner.learningRateOf(config),
    phases: [ppoPhase(config, (minibatch) => rndLoss(config, networks, minibatch))],
  })
})

/**
 * Makes RND; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: KeyDoor.env, numEnvs: 32, algorithm: Rnd.make({ intrinsicCoefficient: 0.5 }), totalSteps: 2_000_000 })
 * ```
 */
export const make: Algorithm.Make<RndOptions> = Algorithm.define({ name: "rnd", config: RndConfig, setup }).make
