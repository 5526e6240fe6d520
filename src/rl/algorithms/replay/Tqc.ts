/**
 * Truncated quantile critics (Kuznetsov et al. 2020, arXiv:2005.04269): SAC whose critics learn quantiles of the return in
 * place of its mean. The target leaves out the highest quantiles of all critics together, because those overestimate. Actor,
 * temperature and learner are SAC's own.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { ConfigError } from "../../../base/config/Config.ts"
import * as Fields from "../../../base/config/fields.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Losses from "../../losses/Losses.ts"
import * as Model from "../../model/critic.ts"
import * as Sac from "./Sac.ts"

const { add, concat, expandDims, mean, mul, sub } = Graph

// --- Config: `TqcOptions` are the settings in code; `TqcConfig` checks them and fills in the defaults ---

export interface TqcOptions extends Sac.SacOptions {
  /** The number of critics. @default 2 */
  readonly critics?: number
  /** The number of quantiles of each critic. @default 25 */
  readonly quantiles?: number
  /**
   * The number of quantiles per critic that targets leave out: the highest of all critics' quantiles together. @default
   * 2
   */
  readonly dropped?: number
}

/**
 * The largest number of critics, of quantiles per critic, and of all quantiles: sorting n of them takes n² numbers for
 * each row.
 */
const most = 500

export const TqcConfig = Schema.Struct({
  ...Sac.sacFields,
  critics: Fields.withDefault(Fields.bounded("critics"), 2),
  quantiles: Fields.withDefault(Fields.bounded("atoms"), 25),
  dropped: Fields.withDefault(Fields.bounded("index"), 2),
})
export type TqcConfig = typeof TqcConfig.Type

// --- Critics; the rest is SAC's ---

/** Returns the function that makes critics with `quantiles` numbers for each action. */
export const quantileCritics =
  (config: TqcConfig): Sac.MakeCritics =>
  (observationSpace, actionSpace) => {
    const critics = Model.critics(config.critics, observationSpace, actionSpace, config, config.quantiles)
    return {
      parameters: critics.parameters,
      apply: critics.apply,
      // The actor's loss takes the mean of all quantiles, and leaves none out.
      values: (weights, observations, actions) => [mean(concat(critics.apply(weights, observations, actions), 1), 1)],
      // Target: yᵢ = r + γ (zᵢ(s′, a′) − α log π(a′ | s′)), with the lowest quantiles zᵢ of all target critics.
      // Critics: the quantile regression of each critic towards all yᵢ, averaged over critics and quantiles.
      loss: ({ batch, actions, next, weights, targetWeights, alpha }) => {
        const all = concat(critics.apply(targetWeights, batch.nextObservations, next.action), 1)
        const kept = (config.quantiles - config.dropped) * config.critics
        const target = Losses.quantileTarget({
          r_t: batch.rewards,
          discount_t: batch.discounts,
          quantiles_t: sub(Losses.lowest(all, kept), expandDims(mul(alpha, next.logProbability), 1)),
        })
        const estimates = critics.apply(weights, batch.observations, actions)
        return { loss: criticLoss(estimates, target), values: estimates, target }
      },
    }
  }

/** Computes the loss of quantile regression, averaged over rows, critics and quantiles, as in sb3-contrib. */
export const criticLoss = (estimates: ReadonlyArray<Graph.Tensor>, target: Graph.Tensor): Graph.Tensor => {
  const losses = estimates.map((quantiles_tm1) => Losses.quantileLoss({ quantiles_tm1, target }))
  const [, quantiles] = estimates[0].shape
  return mul(mean(losses.reduce((sum, loss) => add(sum, loss))), 1 / (estimates.length * quantiles))
}

const setup = (config: TqcConfig, task: Algorithm.Task) => {
  const { critics, quantiles, dropped } = config
  const refused = (key: "dropped" | "quantiles", problem: string) =>
    Effect.fail(ConfigError.at({ source: "tqc" }, `algorithm.${key}`, problem))
  if (dropped >= quantiles)
    return refused("dropped", `expected less than quantiles, which is ${quantiles}, found ${dropped}`)
  if (critics * quantiles > most)
    return refused(
      "quantiles",
      `expected at most ${most} of all ${critics} critics together, found ${critics * quantiles}`,
    )
  return Sac.setup(config, task, "tqc", quantileCritics(config))
}

/**
 * Makes TQC; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: Pendulum.env, numEnvs: 1, algorithm: Tqc.make({ critics: 5 }), totalSteps: 20_000 })
 * ```
 */
export const make: Algorithm.Make<TqcOptions> = Algorithm.define({
  name: "tqc",
  config: TqcConfig,
  setup,
}).make
