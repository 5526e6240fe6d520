/**
 * Computes losses of language models, one number L_t for each token, not yet reduced. `weightedSum` reduces them to the
 * scalar to minimise, Σ w_t L_t; the weights w_t come from `tokenWeights` and hold both the mask and the normalisation,
 * in which most of these algorithms differ. `objectiveGraph` combines all of this from a config.
 *
 * All tensors have the same shape, such as [rows, width]. `logProbability_t` is log π(token t) by the weights that are
 * trained, `oldLogProbability_t` by the trainer's weights when the step began, `inferenceLogProbability_t` by the
 * engine that sampled the token, and `referenceLogProbability_t` by the model to which a KL term keeps the policy
 * close. `advantage_t` is the advantage of the token's completion. `sequence_t` (i32) is the number of the completion
 * that the token belongs to, or −1 for none.
 *
 * @example
 * ```ts
 * const [logProbability_t, oldLogProbability_t] = [Graph.constant([-1, -2]), Graph.constant([-1.5, -2])]
 * const logRatio_t = Graph.sub(logProbability_t, oldLogProbability_t)
 * const advantage_t = Graph.constant([1, -1])
 * const loss_t = Losses.tokenClippedSurrogate({ logRatio_t, advantage_t, clipLow: 0.2, clipHigh: 0.28 })
 * const loss = Losses.weightedSum({ loss_t, weight_t: Graph.constant([0.5, 0.5]) }) // DAPO, by the mean over tokens
 * ```
 */
import * as Graph from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { clippedObjective } from "./policyGradient.ts"
import { expectShape, type Tensors } from "./shapes.ts"

const { clip, div, exp, gather, greater, less, maximum, minimum, mul, neg, reshape, scatterAdd, sigmoid, square } =
  Graph
const { stopGradient, sub, sum, where } = Graph

/** Sums up the weighted losses of tokens, Σ w_t L_t: the scalar to minimise. */
export const weightedSum = ({ loss_t, weight_t }: Tensors<"loss_t" | "weight_t">): Tensor => {
  expectShape("weightedSum", loss_t.shape, { weight_t })
  return sum(mul(loss_t, weight_t))
}

/**
 * Computes the loss of supervised fine-tuning, the negative log likelihood of each token: L_t = −log π(token t).
 *
 * @example
 * ```ts
 * Losses.tokenNegativeLogLikelihood({ logProbability_t: Graph.constant([-1, -3]) }) // [1, 3]
 * ```
 */
export const tokenNegativeLogLikelihood = ({ logProbability_t }: Tensors<"logProbability_t">): Tensor =>
  neg(logProbability_t)

/**
 * Computes the loss of REINFORCE (Williams 1992): L_t = −A_t log π(token t). RLOO (Ahmadian et al. 2024,
 * arXiv:2402.14740) is this loss with leave-one-out advantages, summed over each completion.
 *
 * @example
 * ```ts
 * const logProbability_t = Graph.constant([-1, -2])
 * Losses.tokenPolicyGradient({ logProbability_t, advantage_t: Graph.constant([1, -1]) }) // [1, −2]
 * ```
 */
export const tokenPolicyGradient = ({
  logProbability_t,
  advantage_t,
}: Tensors<"logProbability_t" | "advantage_t">): Tensor => {
  expectShape("tokenPolicyGradient", logProbability_t.shape, { advantage_t })
  return neg(mul(stopGradient(advantage_t), logProbability_t))
}

/** The distances by which a ratio may lie below and above 1. */
export interface ClipRange {
  readonly clipLow: number
  readonly clipHigh: number
}

/**
 * Computes PPO's clipped surrogate of each token with the ratio r_t = exp(logRatio_t):
 * L_t = −min(r_t A_t, clip(r_t, 1 − clipLow, 1 + clipHigh) A_t).
 *
 * GRPO (Shao et al. 2024, arXiv:2402.03300) and Dr. GRPO (Liu et al. 2025, arXiv:2503.20783) clip by 0.2 on both sides;
 * DAPO (Yu et al. 2025, arXiv:2503.14476) by 0.2 below and 0.28 above.
 *
 * @example
 * ```ts
 * const logRatio_t = Graph.constant([Math.log(0.5), Math.log(2)])
 * const advantage_t = Graph.constant([1, 1])
 * Losses.tokenClippedSurrogate({ logRatio_t, advantage_t, clipLow: 0.2, clipHigh: 0.28 }) // [−0.5, −1.28]
 * ```
 */
export const tokenClippedSurrogate = ({
  logRatio_t,
  advantage_t,
  clipLow,
  clipHigh,
}: Tensors<"logRatio_t" | "advantage_t"> & ClipRange): Tensor => {
  expectShape("tokenClippedSurrogate", logRatio_t.shape, { advantage_t })
  return neg(
    clippedObjective({
      ratio_t: exp(logRatio_t),
      advantage_t: stopGradient(advantage_t),
      low: clipLow,
      high: clipHigh,
    }),
  )
}

/**
 * Replaces each token's log ratio by the mean over the tokens of its sequence, of which there are `sequences`. The
 * exponential of that mean is the ratio of GSPO (Zheng et al. 2025, arXiv:2507.18071): s = (π(sequence) /
 * π_old(sequence))^(1/length). It gives GSPO's loss together with `tokenClippedSurrogate` and weights whose sum over a
 * sequence is the sequence's weight. Tokens of no sequence (−1) get 0, and do not count.
 *
 * @example
 * ```ts
 * const logRatio_t = Graph.constant([1, 3, 5, 7])
 * const sequence_t = Graph.constant(Int32Array.of(0, 0, 1, -1))
 * Losses.sequenceLogRatio({ logRatio_t, sequence_t, sequences: 2 }) // [2, 2, 5, 0]
 * ```
 */
export const sequenceLogRatio = ({
  logRatio_t,
  sequence_t,
  sequences,
}: Tensors<"logRatio_t" | "sequence_t"> & { readonly sequences: number }): Tensor => {
  expectShape("sequenceLogRatio", logRatio_t.shape, { sequence_t })
  const numbers = Graph.flatten(sequence_t)
  const belongs = Graph.cast(Graph.not(less(numbers, 0)), "f32")
  // Tokens of no sequence share a row of their own after those of the sequences.
  const rows = Graph.where(less(numbers, 0), sequences, numbers)
  const totals = scatterAdd(rows, mul(Graph.flatten(logRatio_t), belongs), sequences + 1)
  const lengths = scatterAdd(rows, belongs, sequences + 1)
  return reshape(gather(div(totals, maximum(lengths, 1)), rows), logRatio_t.shape)
}

/**
 * Computes the loss of CISPO (MiniMax 2025, arXiv:2506.13585): L_t = −stop(min(r_t, 1 + clipHigh)) A_t log π(token t).
 * The clipped ratio is a weight without a gradient, so that also clipped tokens are trained. With `clipLow`, the weight
 * is also at least 1 − clipLow. ScaleRL (Khatri et al. 2025, arXiv:2510.13786) has the same loss, with a much larger bound.
 *
 * @example
 * ```ts
 * const logProbability_t = Graph.constant([-1, -2])
 * const [logRatio_t, advantage_t] = [Graph.constant([0, 1]), Graph.constant([1, 1])]
 * Losses.tokenCispo({ logProbability_t, logRatio_t, advantage_t, clipLow: null, clipHigh: 0.28 }) // [1, 2.56]
 * ```
 */
export const tokenCispo = ({
  logProbability_t,
  logRatio_t,
  advantage_t,
  clipLow,
  clipHigh,
}: Tensors<"logProbability_t" | "logRatio_t" | "advantage_t"> & {
  readonly clipLow: number | null
  readonly clipHigh: number
}): Tensor => {
  expectShape("tokenCispo", logProbability_t.shape, { logRatio_t, advantage_t })
  const capped = minimum(exp(logRatio_t), 1 + clipHigh)
  const ratio_t = clipLow === null ? capped : maximum(capped, 1 - clipLow)
  return tokenPolicyGradient({ logProbability_t, advantage_t: mul(ratio_t, advantage_t) })
}

/** The temperatures of SAPO's gate, for tokens whose advantage is above 0 and for all others. */
export interface SapoTemperatures {
  readonly temperaturePositive: number
  readonly temperatureNegative: number
}

/** The largest logarithm of a ratio in SAPO's gate, beyond which the gate is flat and exp could overflow. */
const largestLogRatio = 20

/**
 * Computes the loss of SAPO (soft adaptive policy optimisation; Gao et al. 2025, arXiv:2511.20347) with the ratio
 * r_t = exp(logRatio_t): L_t = −(4 / τ) σ(τ (r_t − 1)) A_t, where τ is the temperature for the advantage's sign. The gate
 * bends where PPO clips: its slope is 1 at r_t = 1, and falls smoothly to 0 on both sides.
 *
 * @example
 * ```ts
 * const [logRatio_t, advantage_t] = [Graph.constant([0, 0]), Graph.constant([1, -1])]
 * Losses.tokenSapo({ logRatio_t, advantage_t, temperaturePositive: 1, temperatureNegative: 2 }) // [−2, 1]
 * ```
 */
export const tokenSapo = ({
  logRatio_t,
  advantage_t,
  temperaturePositive,
  temperatureNegative,
}: Tensors<"logRatio_t" | "advantage_t"> & SapoTemperatures): Tensor => {
  expectShape("tokenSapo", logRatio_t.shape, { advantage_t })
  const ratio_t = exp(clip(logRatio_t, -largestLogRatio, largestLogRatio))
  const temperature_t = where(greater(advantage_t, 0), temperaturePositive, temperatureNegative)
  const gate_t = div(mul(sigmoid(mul(temperature_t, sub(ratio_t, 1))), 4), temperature_t)
  return neg(mul(gate_t, stopGradient(advantage_t)))
}

/**
 * Computes the loss of GMPO (geometric-mean policy optimisation; Zhao et al. 2025, arXiv:2507.20673):
 * L_t = −A_t exp(mean of the clipped log ratios of the token's sequence), so the ratio of a sequence is the geometric mean of
 * its tokens' ratios, each of them clipped to at most e^clipHigh if its advantage is above 0, and to at least e^−clipLow
 * otherwise. It needs weights whose sum over a sequence is the sequence's weight, such as those of `sequence_mean`. Tokens of
 * no sequence (−1) do not count.
 *
 * @example
 * ```ts
 * const logRatio_t = Graph.constant([0.1, 0.9])
 * const [advantage_t, sequence_t] = [Graph.constant([1, 1]), Graph.constant(Int32Array.of(0, 0))]
 * Losses.tokenGmpo({ logRatio_t, advantage_t, sequence_t, sequences: 1, clipLow: 0.4, clipHigh: 0.4 }) // both −exp(0.25)
 * ```
 */
export const tokenGmpo = ({
  logRatio_t,
  advantage_t,
  sequence_t,
  sequences,
  clipLow,
  clipHigh,
}: Tensors<"logRatio_t" | "advantage_t" | "sequence_t"> & ClipRange & { readonly sequences: number }): Tensor => {
  expectShape("tokenGmpo", logRatio_t.shape, { advantage_t, sequence_t })
  const clipped_t = where(greater(advantage_t, 0), minimum(logRatio_t, clipHigh), maximum(logRatio_t, -clipLow))
  const ratio_t = exp(sequenceLogRatio({ logRatio_t: clipped_t, sequence_t, sequences }))
  return neg(mul(ratio_t, stopGradient(advantage_t)))
}

/** The name of an estimator of the KL divergence. */
export type KlEstimator = "k1" | "k2" | "k3"

/**
 * Estimates the divergence KL(π ‖ π_ref) at each token that π sampled (Schulman 2020, "Approximating KL Divergence"),
 * with d_t = log π_ref(token t) − log π(token t):
 *
 *     k1 = −d_t    k2 = d_t² / 2    k3 = exp(d_t) − d_t − 1
 *
 * k1 and k3 have the right mean. As a loss, k1 has a gradient whose mean is 0: use k2, whose gradient has the mean of the
 * divergence's own gradient, or k3, as in GRPO.
 *
 * @example
 * ```ts
 * const logProbability_t = Graph.constant([-1])
 * const referenceLogProbability_t = Graph.constant([-2])
 * Losses.tokenKl({ logProbability_t, referenceLogProbability_t, estimator: "k3" }) // [exp(−1)]
 * ```
 */
export const tokenKl = ({
  logProbability_t,
  referenceLogProbability_t,
  estimator,
}: Tensors<"logProbability_t" | "referenceLogProbability_t"> & { readonly estimator: KlEstimator }): Tensor => {
  expectShape("tokenKl", logProbability_t.shape, { referenceLogProbability_t })
  const d_t = sub(referenceLogProbability_t, logProbability_t)
  if (estimator === "k1") return neg(d_t)
  if (estimator === "k2") return mul(square(d_t), 0.5)
  return sub(sub(exp(d_t), d_t), 1)
}

/**
 * Computes the weight that corrects for an inference engine whose probabilities differ from the trainer's (truncated
 * importance sampling; Ionides 2008, Yao et al. 2025): min(π_old(token t) / π_inference(token t), cap). No gradient
 * flows through it.
 *
 * @example
 * ```ts
 * const oldLogProbability_t = Graph.constant([-1, -1])
 * const inferenceLogProbability_t = Graph.constant([-1, -3])
 * Losses.truncatedImportance({ oldLogProbability_t, inferenceLogProbability_t, cap: 2 }) // [1, 2]
 * ```
 */
export const truncatedImportance = ({
  oldLogProbability_t,
  inferenceLogProbability_t,
  cap,
}: Tensors<"oldLogProbability_t" | "inferenceLogProbability_t"> & { readonly cap: number }): Tensor => {
  expectShape("truncatedImportance", oldLogProbability_t.shape, { inferenceLogProbability_t })
  return stopGradient(minimum(exp(sub(oldLogProbability_t, inferenceLogProbability_t)), cap))
}

/**
 * Computes the entropy of the distribution over the vocabulary at each token, from logits [..., vocabulary].
 *
 * @example
 * ```ts
 * Losses.tokenEntropy(Graph.constant([0, 0], [1, 2])) // [log 2]
 * ```
 */
export const tokenEntropy = (logits: Tensor): Tensor => {
  const logProbabilities = Graph.logSoftmax(logits)
  return neg(sum(mul(exp(logProbabilities), logProbabilities), -1))
}
