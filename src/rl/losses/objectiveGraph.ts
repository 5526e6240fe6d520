/** Builds the loss of a config's objective (see `TokenObjective.ts`) for training language models on tokens. */
import * as Graph from "../../tensor/graph/ops.ts"
import { fail } from "../../tensor/graph/ops/core.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { tokenDpo } from "./preferences.ts"
import { expectShape } from "./shapes.ts"
import {
  sequenceLogRatio,
  tokenCispo,
  tokenClippedSurrogate,
  tokenGmpo,
  tokenKl,
  tokenNegativeLogLikelihood,
  tokenPolicyGradient,
  tokenSapo,
  truncatedImportance,
  weightedSum,
} from "./tokenLosses.ts"
import { type MetricSums, type RatioBounds, sumsOf } from "./tokenMetrics.ts"
import type { DpoObjective, KlTerm, TokenObjective } from "./TokenObjective.ts"

const { add, exp, mul, notEqual, stopGradient, sub, sum, where } = Graph

/** The columns that an objective reads, with a number for each token. All have the shape of `logProbability_t`. */
export interface TokenColumns {
  /** The log probability of the token under the weights that are trained. */
  readonly logProbability_t: Tensor
  /** The log probability of the token according to the inference engine that sampled it. */
  readonly inferenceLogProbability_t?: Tensor | undefined
  /**
   * The log probability of the token under the trainer's weights at the beginning of the step, for steps of several
   * updates. If it is missing, ratios use `inferenceLogProbability_t` instead. But if there is an importance
   * correction, which already compares with the engine, they use `logProbability_t` itself, so that they are 1.
   */
  readonly oldLogProbability_t?: Tensor | undefined
  /** The log probability of the token under the reference model of the KL term, or of DPO. */
  readonly referenceLogProbability_t?: Tensor | undefined
  /** The advantage of the token's completion. */
  readonly advantage_t?: Tensor | undefined
  /** The weight of the token, from `tokenWeights`. A token of weight 0 does not count, whatever its other columns hold. */
  readonly weight_t: Tensor
  /**
   * The number of the token's sequence, an i32 from 0; −1 if it belongs to none. For DPO, the answers of pair k have the
   * numbers 2k (chosen) and 2k + 1 (rejected).
   */
  readonly sequence_t?: Tensor | undefined
  /** The entropy of the model's distribution at the token, if it should be reported: see `tokenEntropy`. */
  readonly entropy_t?: Tensor | undefined
}

type ColumnName = keyof TokenColumns

/** Returns the KL term of an objective, if it has one. */
const klTermOf = (config: TokenObjective): KlTerm | null =>
  config.type === "sft" || config.type === "dpo" || config.kl === null || config.kl.coefficient === 0 ? null : config.kl

/** Tells whether an objective compares the probabilities of whole sequences. */
const hasSequenceRatio = ({ type }: TokenObjective): boolean => type === "gspo" || type === "gmpo"

/**
 * Returns the columns that an objective needs, besides `logProbability_t` and `weight_t`. `oldLogProbability_t` and
 * `entropy_t` are never among them, because all objectives work without them.
 *
 * @example
 * ```ts
 * const config = Schema.decodeSync(Losses.TokenObjective)({ type: "gspo" })
 * Losses.columnsOf(config) // ["advantage_t", "inferenceLogProbability_t", "sequence_t"]
 * ```
 */
export const columnsOf = (config: TokenObjective): ReadonlyArray<ColumnName> => {
  if (config.type === "sft") return []
  if (config.type === "dpo") return ["referenceLogProbability_t", "sequence_t"]
  const hasRatio = config.type !== "reinforce" && config.type !== "rloo"
  return [
    "advantage_t",
    ...(hasRatio || config.importance !== null ? (["inferenceLogProbability_t"] as const) : []),
    ...(klTermOf(config) === null ? [] : (["referenceLogProbability_t"] as const)),
    ...(hasSequenceRatio(config) ? (["sequence_t"] as const) : []),
  ]
}

export interface ObjectiveGraph {
  /** The scalar to minimise. The losses of the micro-batches of a step add up to the loss of the step. */
  readonly loss: Tensor
  /** The same loss, summed by the option `total`. */
  readonly losses: Tensor
  /** Sums over the tokens that count. Add the sums of all micro-batches, then call `meanMetrics`. */
  readonly metrics: MetricSums<Tensor>
}

export interface ObjectiveOptions {
  /** A number above all numbers in `sequence_t`. By default, the number of tokens, which is always enough. */
  readonly sequences?: number
  /**
   * Sums up a number per token, for `losses` and `metrics`. By default to one number; for a micro-batch of several
   * runs, to one number per run.
   */
  readonly total?: (x_t: Tensor) => Tensor
}

/**
 * Builds the loss of an objective over a micro-batch: Σ w_t (i_t L_t + β KL_t), where w_t is the weight of the token, L_t
 * its loss by the algorithm, i_t its importance weight, and β the coefficient of the KL term. Throws a `GraphError` that
 * names the column if one is missing or has another shape.
 *
 * @example
 * ```ts
 * const config = Schema.decodeSync(Losses.TokenObjective)({ type: "dapo" })
 * const column = (name: string) => Graph.input(name, [4, 128])
 * const { loss, metrics } = Losses.objectiveGraph(config, {
 *   logProbability_t: column("logProbability"),
 *   inferenceLogProbability_t: column("inferenceLogProbability"),
 *   advantage_t: column("advantage"),
 *   weight_t: column("weight"),
 * })
 * ```
 */
export const objectiveGraph = (
  config: TokenObjective,
  columns: TokenColumns,
  { sequences, total = (x_t) => sum(x_t) }: ObjectiveOptions = {},
): ObjectiveGraph => {
  const { weight_t, logProbability_t: raw_t } = columns
  const { shape } = raw_t
  expectShape(config.type, shape, { weight_t })
  const counts_t = notEqual(weight_t, 0)
  const optional = (name: ColumnName, otherwise = 0): Tensor | undefined => {
    const tensor = columns[name]
    if (tensor === undefined) return undefined
    expectShape(config.type, shape, { [name]: tensor })
    // Padding may hold −∞ or NaN, which a weight of 0 would not remove.
    return where(counts_t, tensor, otherwise)
  }
  const required = (name: ColumnName, otherwise = 0): Tensor =>
    optional(name, otherwise) ?? fail(config.type, `the column ${name} is missing`, raw_t)

  const reduced = (loss_t: Tensor) => ({
    loss: weightedSum({ loss_t, weight_t }),
    losses: total(mul(loss_t, weight_t)),
  })
  const logProbability_t = required("logProbability_t")
  const entropy_t = optional("entropy_t")
  if (config.type === "sft") {
    const loss_t = tokenNegativeLogLikelihood({ logProbability_t })
    return { ...reduced(loss_t), metrics: sumsOf({ counts_t, entropy_t }, total) }
  }
  for (const name of columnsOf(config)) required(name)
  const most = sequences ?? shape.reduce((a, b) => a * b, 1)
  if (config.type === "dpo") {
    const { loss_t, ...pairs } = pairsOf(config, required, most)
    return { ...reduced(loss_t), metrics: sumsOf({ counts_t, entropy_t, ...pairs }, total) }
  }
  const advantage_t = required("advantage_t")
  const inferenceLogProbability_t = optional("inferenceLogProbability_t")
  const self_t = stopGradient(logProbability_t)
  const behaviour_t = config.importance === null ? (inferenceLogProbability_t ?? self_t) : self_t
  const oldLogProbability_t = optional("oldLogProbability_t") ?? behaviour_t
  const tokenLogRatio_t = sub(logProbability_t, oldLogProbability_t)
  const bySequence = hasSequenceRatio(config) ? { sequence_t: required("sequence_t", -1), sequences: most } : undefined
  const logRatio_t =
    config.type === "gspo" && bySequence !== undefined
      ? sequenceLogRatio({ logRatio_t: tokenLogRatio_t, ...bySequence })
      : tokenLogRatio_t

  const policyLoss_t = policyLossOf(config, { logProbability_t, logRatio_t, advantage_t, ...bySequence })
  const importance_t =
    config.importance === null || inferenceLogProbability_t === undefined
      ? undefined
      : truncatedImportance({
          // REINFORCE has no ratio to the old policy, so its importance weight corrects the whole difference to the
          // inference engine.
          oldLogProbability_t: config.type === "reinforce" || config.type === "rloo" ? self_t : oldLogProbability_t,
          inferenceLogProbability_t,
          cap: config.importance.cap,
        })
  const corrected_t = importance_t === undefined ? policyLoss_t : mul(importance_t, policyLoss_t)
  const referenceLogProbability_t = optional("referenceLogProbability_t")
  const loss_t = withKl(klTermOf(config), corrected_t, logProbability_t, referenceLogProbability_t)
  const metrics = {
    counts_t,
    entropy_t,
    ratio_t: exp(logRatio_t),
    clip: ratioBoundsOf(config),
    importance_t,
    cap: config.importance?.cap,
    // The engine sampled the tokens, so this estimates the divergence from the engine to the trainer.
    inferenceKl_t: klTo(inferenceLogProbability_t, logProbability_t),
    referenceKl_t: klTo(logProbability_t, referenceLogProbability_t),
  }
  return { ...reduced(loss_t), metrics: sumsOf(metrics, total) }
}

/** Adds the KL term to the loss of each token, if there is one. */
const withKl = (
  kl: KlTerm | null,
  loss_t: Tensor,
  logProbability_t: Tensor,
  reference_t: Tensor | undefined,
): Tensor => {
  if (kl === null || reference_t === undefined) return loss_t
  const kl_t = tokenKl({ logProbability_t, referenceLogProbability_t: reference_t, estimator: kl.type })
  return add(loss_t, mul(kl_t, kl.coefficient))
}

/** Computes the loss and the metrics of pairs. `required` returns a column. */
const pairsOf = (
  config: DpoObjective,
  required: (name: ColumnName, otherwise?: number) => Tensor,
  sequences: number,
) => {
  const logProbability_t = required("logProbability_t")
  const referenceLogProbability_t = required("referenceLogProbability_t")
  const sequence_t = required("sequence_t", -1)
  const pairs = tokenDpo({ ...config, logProbability_t, referenceLogProbability_t, sequence_t, sequences })
  return { loss_t: pairs.loss_t, pairs, referenceKl_t: klTo(logProbability_t, referenceLogProbability_t) }
}

type PolicyObjective = Exclude<TokenObjective, { readonly type: "sft" | "dpo" }>

/** Returns how far the ratios of an objective may lie below and above 1; undefined if it does not clip them. */
const ratioBoundsOf = (config: PolicyObjective): RatioBounds | undefined => {
  if (config.type === "gmpo") return { clipLow: 1 - Math.exp(-config.clipLow), clipHigh: Math.exp(config.clipHigh) - 1 }
  if (config.type === "scalerl") return { clipLow: null, clipHigh: config.cap - 1 }
  return "clipHigh" in config ? config : undefined
}

/** The numbers of tokens from which the policy's loss is computed; the last two for objectives that compare sequences. */
interface PolicyTokens extends Readonly<Record<"logProbability_t" | "logRatio_t" | "advantage_t", Tensor>> {
  readonly sequence_t?: Tensor
  readonly sequences?: number
}

/** Computes the policy's loss of each token, before it is corrected for the inference engine's probabilities. */
const policyLossOf = (config: PolicyObjective, tokens: PolicyTokens): Tensor => {
  const { logProbability_t, logRatio_t, advantage_t, sequence_t, sequences = 0 } = tokens
  switch (config.type) {
    case "reinforce":
    case "rloo":
      return tokenPolicyGradient({ logProbability_t, advantage_t })
    case "cispo":
      return tokenCispo({ ...config, logProbability_t, logRatio_t, advantage_t })
    case "scalerl":
      return tokenCispo({ clipLow: null, clipHigh: config.cap - 1, logProbability_t, logRatio_t, advantage_t })
    case "sapo":
      return tokenSapo({ ...config, logRatio_t, advantage_t })
    case "gmpo":
      return sequence_t === undefined
        ? fail(config.type, "the column sequence_t is missing", logRatio_t)
        : tokenGmpo({ ...config, logRatio_t, advantage_t, sequence_t, sequences })
    default:
      return tokenClippedSurrogate({ ...config, logRatio_t, advantage_t })
  }
}

/** Estimates KL(sampling ‖ other) by k3 at each token that was drawn from `sampling`. */
const klTo = (sampling: Tensor | undefined, other: Tensor | undefined): Tensor | undefined =>
  sampling === undefined || other === undefined
    ? undefined
    : tokenKl({ logProbability_t: sampling, referenceLogProbability_t: other, estimator: "k3" })
