import { Schema } from "effect"
import { fraction, naturalInt, nonNegative, positive, units, withDefault } from "../config/fields.ts"
import type { Box } from "../env/Space.ts"
import { orthogonal } from "../graph/initialisers.ts"
import { linear } from "../graph/layers.ts"
import { add, div, maximum, mean, mul, square, stopGradient, sub, sum } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"
import { type Algorithm, define, type Task } from "../learner/Algorithm.ts"
import type { RndOptions } from "./options/Rnd.ts"
import { buildThen } from "../learner/build.ts"
import { isImage, type NetworkConfig, trunk, type Weights } from "../model/trunk.ts"
import { ppoFields, ppoLoss, ppoPhase, type PpoConfig } from "./Ppo.ts"
import { type ActorCriticModel, actorCriticModel } from "../learner/rollout/actorCriticModel.ts"
import type { Auxiliary } from "../learner/rollout/Auxiliary.ts"
import type { Bonus } from "../learner/rollout/Bonus.ts"
import { resolved } from "../learner/rollout/fields.ts"
import type { Loss, Minibatch } from "../learner/rollout/programs.ts"
import { rolloutLearner } from "../learner/rollout/RolloutLearner.ts"

/**
 * Random network distillation (Burda et al. 2018, arXiv:1810.12894) on top of PPO: a network learns to predict what
 * another, never trained, says of an observation. Where it can't yet, the observation is new, and that is rewarded. The
 * bonus has a critic of its own, because it has its own discount and needn't end with the episode.
 */
export const rndFields = {
  ...ppoFields,
  /** The discount factor of the bonus. */
  gammaIntrinsic: withDefault(fraction, 0.99),
  /** The weight of the advantages of the env's rewards. */
  extrinsicCoefficient: withDefault(nonNegative, 2),
  /** The weight of the advantages of the bonus. */
  intrinsicCoefficient: withDefault(nonNegative, 1),
  /** Whether the returns of the bonus end with the episode, as those of the env's reward do. */
  episodic: withDefault(Schema.Boolean, false),
  /**
   * The number of random steps in each env before the first rollout; their observations initialise the normalisation.
   */
  initObsSteps: withDefault(naturalInt, 600),
  /** The share of rows that the predictor learns from; null is 32 divided by the number of envs, at most 1. */
  predictionShare: withDefault(Schema.NullOr(fraction), null),
  /** The predictor's learning rate as a share of `learningRate`. If it is too high, the bonus vanishes too soon. */
  predictionPace: withDefault(positive, 0.1),
  /** The number of features of an observation that the predictor predicts. */
  predictionSize: withDefault(units, 64),
}
export const RndConfig = Schema.Struct(rndFields)
export type RndConfig = typeof RndConfig.Type

/**
 * The predictor has a layer more than what it is to predict, so that it can. Both end in plain sums: a rectifier that
 * never fires would leave an error that nothing can learn away, and states would seem new for ever.
 */
export const rndBonus = (config: RndConfig, { observationSpace, numEnvs }: Task): Bonus => {
  const width = observationSpace.shape.reduce((product, length) => product * length, 1)
  const network = (name: string, hidden: ReadonlyArray<number>) => {
    const below = trunk(name, observationSpace, { ...networkFor(observationSpace, config), hidden })
    const last = linear(`${name}.${below.depth}`, below.outputs, config.predictionSize, orthogonal(1))
    return {
      parameters: { ...below.parameters, ...last.parameters },
      apply: (weights: Weights, observations: Tensor) => last.apply(weights, below.apply(weights, observations)),
    }
  }
  const fixed = network("rnd.fixed", isImage(observationSpace) ? [] : config.hidden.slice(0, 1))
  const predictor = network("rnd.predictor", isImage(observationSpace) ? config.hidden.slice(0, 1) : config.hidden)
  const surprise: Bonus["surprise"] = ({ weights, fixed: given, column }) => {
    const seen = column("seen")
    const error = square(sub(predictor.apply(weights, seen), stopGradient(fixed.apply(given, seen))))
    return mean(error, 1)
  }
  return {
    parameters: predictor.parameters,
    pace: config.predictionPace,
    fixed: fixed.parameters,
    surprise,
    loss: (batch) => {
      const learns = batch.column("learns")
      const loss = div(sum(mul(surprise(batch), learns)), maximum(sum(learns), 1))
      return { loss, metrics: { "losses/prediction_loss": loss } }
    },
    columns: { nextObservations: [width], seen: [width], learns: [], bonusTargets: [] },
    share: config.predictionShare ?? Math.min(1, 32 / numEnvs),
    warmUp: config.initObsSteps,
    reward: {
      kind: "own",
      gamma: config.gammaIntrinsic,
      lambda: config.lambda,
      coefficient: config.intrinsicCoefficient,
      extrinsicCoefficient: config.extrinsicCoefficient,
      episodic: config.episodic,
    },
  }
}

/** A vector's features must be able to grow, or everything far away would look the same: rectifiers. */
const networkFor = (space: Box, config: NetworkConfig): NetworkConfig =>
  isImage(space) ? config : { ...config, activation: "relu" }

/** PPO's loss with the second critic's error. */
export const rndLoss = (config: PpoConfig, { evaluate }: ActorCriticModel, batch: Minibatch): Loss => {
  const evaluated = evaluate(batch)
  const main = ppoLoss(config, batch, evaluated)
  const error = mul(mean(square(sub(evaluated.heads.bonusValues, batch.column("bonusTargets")))), 0.5)
  return {
    ...main,
    loss: add(main.loss, mul(error, config.valueCoefficient)),
    metrics: { ...main.metrics, "losses/intrinsic_value_loss": error },
  }
}

/** RND for a task, with or without tasks beside it. */
export const rndLearner = (
  name: string,
  given: RndConfig,
  task: Task,
  auxiliary?: (model: ActorCriticModel) => Auxiliary,
) => {
  const config = resolved(given)
  return buildThen(
    () => {
      const model = actorCriticModel({ ...task, ...config, critics: ["bonusValues"] })
      return { model, bonus: rndBonus(config, task), beside: auxiliary?.(model) }
    },
    ({ model, bonus, beside }) =>
      rolloutLearner(
        {
          name,
          config,
          model,
          bonus,
          auxiliary: beside,
          phases: [ppoPhase(config, (batch) => rndLoss(config, model, batch))],
        },
        task,
      ),
  )
}

/**
 * RND as a value, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: KeyDoor.env, numEnvs: 32, algorithm: Rnd.make({ intrinsicCoefficient: 0.5 }), totalSteps: 2_000_000 })
 * ```
 */
export const make: (options?: RndOptions) => Algorithm = define({
  name: "rnd",
  config: RndConfig,
  setup: (config, task) => rndLearner("rnd", config, task),
}).make
