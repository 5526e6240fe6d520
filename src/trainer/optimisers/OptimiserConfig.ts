/** Declares the optimiser settings of a run's config, and makes the optimiser. */
import { Schema } from "effect"
import { fraction, nonNegative, positive, withDefault } from "../../base/config/fields.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { adam, muon, type Optimiser, sgd } from "../../tensor/graph/optimisers.ts"
import type { ParameterLayout } from "../../tensor/graph/Parameters.ts"

const beta = fraction.check(Schema.isLessThan(1))

/** The default momentum of the types that have one. */
const momenta = { sgd: 0.9, muon: 0.95 }

/** The optimiser that updates a run's weights. */
export const OptimiserConfig = Schema.Struct({
  /** The algorithm. */
  type: withDefault(Schema.Literals(["adamw", "sgd", "muon"]), "adamw"),
  /** The learning rate, before the schedule. */
  lr: withDefault(positive, 1e-5),
  /** The decay rates of AdamW's two moments. `muon` uses AdamW for the parameters that are not matrices. */
  betas: withDefault(Schema.Tuple([beta, beta]), [0.9, 0.999]),
  /** The number that keeps AdamW from dividing by zero. */
  epsilon: withDefault(positive, 1e-8),
  /** The momentum of `sgd` and `muon`; null takes 0.9 and 0.95. */
  momentum: withDefault(Schema.NullOr(beta), null),
  /** The weight decay: each step shrinks the parameters by this factor times the learning rate. */
  weightDecay: withDefault(nonNegative, 0.01),
  /** The largest norm of the gradient of a step; a larger gradient is scaled down to it. 0 sets no limit. */
  maxNorm: withDefault(nonNegative, 1),
}).check(
  Schema.makeFilter(({ type, momentum }) =>
    type === "adamw" && momentum !== null
      ? { path: ["momentum"], issue: "Expected null for adamw, whose momentum is the first of its betas" }
      : undefined,
  ),
)
export type OptimiserConfig = typeof OptimiserConfig.Type

/** The settings of an optimiser, whose learning rate is an input of its program. */
export type OptimiserSettings = Omit<OptimiserConfig, "lr">

/** Makes the optimiser of a config for parameters with this layout. */
export const optimiserOf = (config: OptimiserSettings, layout: ParameterLayout, learningRate: Tensor): Optimiser => {
  const { type, betas, epsilon, weightDecay } = config
  const adamOptions = { beta1: betas[0], beta2: betas[1], epsilon }
  const common = { size: layout.size, learningRate, weightDecay }
  if (type === "adamw") return adam({ ...common, ...adamOptions, name: "adamw" })
  const momentum = config.momentum ?? momenta[type]
  return type === "sgd" ? sgd({ ...common, momentum }) : muon({ ...common, layout, momentum, adam: adamOptions })
}
