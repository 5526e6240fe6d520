/**
 * Defines the configs of the objectives for training language models on tokens. `type` chooses the algorithm, and the
 * other settings have the defaults of its paper. `objectiveGraph` builds the loss of a config.
 */
import { Schema } from "effect"
import { fraction, nonNegative, positive, withDefault } from "../../base/config/fields.ts"
import type { GroupAdvantageInputs, Numbers } from "../returns/Returns.ts"
import { Normalisation } from "./tokenWeights.ts"

/**
 * Adds a KL term to each token's loss: coefficient · KL(π ‖ π_ref), by one of the estimators of `tokenKl`. With a
 * coefficient of 0 there is no term, and no reference model is needed.
 */
export const KlTerm = Schema.Struct({
  type: withDefault(Schema.Literals(["k1", "k2", "k3"]), "k3"),
  coefficient: nonNegative,
})
export type KlTerm = typeof KlTerm.Type

/** Multiplies each token's loss by `truncatedImportance`. */
export const ImportanceCorrection = Schema.Struct({ type: Schema.Literal("truncated"), cap: withDefault(positive, 2) })
export type ImportanceCorrection = typeof ImportanceCorrection.Type

const common = {
  /** The KL term; null adds none. */
  kl: withDefault(Schema.NullOr(KlTerm), null),
  /** The correction for the difference between the inference engine and the trainer; null makes none. */
  importance: withDefault(Schema.NullOr(ImportanceCorrection), null),
}

const normalised = (type: "token_mean" | "sequence_mean" | "sequence_sum" | "group_mean") => ({
  normalisation: withDefault(Normalisation, { type }),
})

const clipped = (low: number, high: number) => ({
  clipLow: withDefault(fraction, low),
  clipHigh: withDefault(nonNegative, high),
})

/** Supervised fine-tuning: tokens are imitated; there are no advantages. */
export const SftObjective = Schema.Struct({ type: Schema.Literal("sft"), ...normalised("token_mean") })

/** REINFORCE (Williams 1992). */
export const ReinforceObjective = Schema.Struct({
  type: Schema.Literal("reinforce"),
  ...common,
  ...normalised("token_mean"),
})

/** REINFORCE leave-one-out (Ahmadian et al. 2024, arXiv:2402.14740). */
export const RlooObjective = Schema.Struct({ type: Schema.Literal("rloo"), ...common, ...normalised("sequence_sum") })

/** Group-relative policy optimisation (Shao et al. 2024, arXiv:2402.03300), with the paper's KL term. */
export const GrpoObjective = Schema.Struct({
  type: Schema.Literal("grpo"),
  ...common,
  kl: withDefault(Schema.NullOr(KlTerm), { type: "k3", coefficient: 0.04 }),
  ...clipped(0.2, 0.2),
  ...normalised("sequence_mean"),
})

/** Dr. GRPO (Liu et al. 2025, arXiv:2503.20783): GRPO without its biases by length and by difficulty. */
export const DrGrpoObjective = Schema.Struct({
  type: Schema.Literal("dr_grpo"),
  ...common,
  ...clipped(0.2, 0.2),
  /** `{ type: "constant", tokens }` in the paper, with the largest number of tokens that a completion may have. */
  normalisation: Normalisation,
})

/** DAPO (Yu et al. 2025, arXiv:2503.14476): a wider clip above than below, and the mean over all tokens. */
export const DapoObjective = Schema.Struct({
  type: Schema.Literal("dapo"),
  ...common,
  ...clipped(0.2, 0.28),
  ...normalised("token_mean"),
})

/** Group sequence policy optimisation (Zheng et al. 2025, arXiv:2507.18071): ratios of whole sequences. */
export const GspoObjective = Schema.Struct({
  type: Schema.Literal("gspo"),
  ...common,
  ...clipped(3e-4, 4e-4),
  ...normalised("sequence_mean"),
})

/** CISPO (MiniMax 2025, arXiv:2506.13585): clips the weight of a token instead of its gradient. */
export const CispoObjective = Schema.Struct({
  type: Schema.Literal("cispo"),
  ...common,
  /** How far the ratio may lie below 1; null, as in the paper, sets no lower bound. */
  clipLow: withDefault(Schema.NullOr(fraction), null),
  /** How far the ratio may lie above 1; the paper tunes it. */
  clipHigh: withDefault(nonNegative, 0.28),
  ...normalised("token_mean"),
})

/**
 * Direct preference optimisation (Rafailov et al. 2023, arXiv:2305.18290), which learns from pairs of a chosen and a rejected
 * answer; see `tokenDpo`.
 */
export const DpoObjective = Schema.Struct({
  type: Schema.Literal("dpo"),
  /** The factor of the rewards. The smaller it is, the further the model may move away from the reference model. */
  beta: withDefault(positive, 0.1),
  /** The assumed share of pairs whose answers are mixed up, below one half; 0 trusts all of them. */
  labelSmoothing: withDefault(
    nonNegative.check(Schema.makeFilter((share) => (share < 0.5 ? undefined : "Expected a number below 0.5"))),
    0,
  ),
  /** Every pair counts the same, whatever the lengths of its answers. */
  normalisation: withDefault(Schema.Struct({ type: Schema.Literal("sequence_sum") }), { type: "sequence_sum" }),
})
export type DpoObjective = typeof DpoObjective.Type

/** Soft adaptive policy optimisation (Gao et al. 2025, arXiv:2511.20347): a smooth gate in the place of the clip. */
export const SapoObjective = Schema.Struct({
  type: Schema.Literal("sapo"),
  ...common,
  /** The gate's temperature where the advantage is above 0; the larger it is, the sooner the gate closes. */
  temperaturePositive: withDefault(positive, 1),
  /** The gate's temperature for all other tokens. */
  temperatureNegative: withDefault(positive, 1.05),
  ...normalised("sequence_mean"),
})

/** Geometric-mean policy optimisation (Zhao et al. 2025, arXiv:2507.20673): clips logarithms of ratios, then averages them. */
export const GmpoObjective = Schema.Struct({
  type: Schema.Literal("gmpo"),
  ...common,
  /** How far the logarithm of a token's ratio may lie below 0. */
  clipLow: withDefault(nonNegative, 0.4),
  /** How far the logarithm of a token's ratio may lie above 0. */
  clipHigh: withDefault(nonNegative, 0.4),
  ...normalised("sequence_mean"),
})

/**
 * ScaleRL (Khatri et al. 2025, arXiv:2510.13786): REINFORCE with truncated importance weights, advantages in units of the
 * batch's deviation, and the same weight for each group. The paper also drops groups whose rewards are equal.
 */
export const ScaleRlObjective = Schema.Struct({
  type: Schema.Literal("scalerl"),
  ...common,
  /** The largest importance weight of a token. */
  cap: withDefault(positive, 5),
  ...normalised("group_mean"),
})

/** The Schema of the objective in a config: `type` chooses the algorithm; all else has the defaults of its paper. */
export const TokenObjective = Schema.Union([
  SftObjective,
  ReinforceObjective,
  RlooObjective,
  GrpoObjective,
  DrGrpoObjective,
  DapoObjective,
  GspoObjective,
  CispoObjective,
  DpoObjective,
  SapoObjective,
  GmpoObjective,
  ScaleRlObjective,
]).annotate({
  expected:
    "an objective whose type is sft, reinforce, rloo, grpo, dr_grpo, dapo, gspo, cispo, dpo, sapo, gmpo or scalerl",
})
export type TokenObjective = typeof TokenObjective.Type

type Estimator = Pick<GroupAdvantageInputs<Numbers>, "baseline" | "deviation" | "epsilon">

/**
 * Returns the settings of `Returns.groupAdvantages` that belong to an objective; null for supervised fine-tuning and
 * DPO, which have no advantages.
 *
 * @example
 * ```ts
 * const estimator = Losses.advantageEstimatorOf("rloo") // { baseline: "leave_one_out", deviation: "none" }
 * ```
 */
export const advantageEstimatorOf = (type: TokenObjective["type"]): Estimator | null => {
  if (type === "sft" || type === "dpo") return null
  if (type === "rloo") return { baseline: "leave_one_out", deviation: "none" }
  if (type === "scalerl") return { baseline: "mean", deviation: "batch", epsilon: 1e-8 }
  if (type === "dr_grpo" || type === "reinforce") return { baseline: "mean", deviation: "none" }
  return { baseline: "mean", deviation: "sample" }
}
