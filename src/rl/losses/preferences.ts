/**
 * Computes the loss of direct preference optimisation (DPO; Rafailov et al. 2023, arXiv:2305.18290), which learns from pairs
 * of answers to the same prompt, a chosen and a rejected one. An answer's reward r is β times the sum, over its tokens, of
 * log π − log π_ref. The loss of a pair, with the margin m = r_chosen − r_rejected and the label smoothing ε, is
 *
 *     −(1 − ε) log σ(m) − ε log σ(−m)
 */
import * as Graph from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { expectShape, type Tensors } from "./shapes.ts"

const { add, broadcastTo, cast, div, flatten, gather, greater, less, maximum, mul, neg, not } = Graph
const { reshape, scatterAdd, slice, softplus, sub, where } = Graph

export interface DpoInputs extends Tensors<"logProbability_t" | "referenceLogProbability_t" | "sequence_t"> {
  /** The factor of the rewards. The smaller it is, the further the model may move away from the reference model. */
  readonly beta: number
  /** The assumed share of pairs whose answers are mixed up; 0 trusts all of them. */
  readonly labelSmoothing: number
  /** A number above all numbers in `sequence_t`. */
  readonly sequences: number
}

/** The numbers of a token's pair. They are the same at all tokens of both answers. */
export interface TokenPairs {
  /** The loss of the pair, divided by the number of tokens of the token's own answer. */
  readonly loss_t: Tensor
  /**
   * One half divided by the number of tokens of the token's own answer; 0 at tokens that belong to no answer. So it sums to 1
   * over a pair, and to the number of pairs over all tokens.
   */
  readonly share_t: Tensor
  /** The reward of the chosen answer. */
  readonly chosen_t: Tensor
  /** The reward of the rejected answer. */
  readonly rejected_t: Tensor
  /** 1 if the chosen answer has the larger reward, otherwise 0. */
  readonly accuracy_t: Tensor
}

/**
 * Computes the loss and the rewards of pairs. `sequence_t` (i32) is 2k at the tokens of the chosen answer of pair k, 2k + 1 at
 * those of the rejected answer, and −1 at all other tokens. Both answers of a pair must be in the tensors.
 *
 * @example
 * ```ts
 * const logProbability_t = Graph.constant([-1, -2])
 * const referenceLogProbability_t = Graph.constant([-2, -1])
 * const sequence_t = Graph.constant(Int32Array.of(0, 1))
 * const settings = { beta: 0.5, labelSmoothing: 0, sequences: 2 }
 * const { loss_t } = Losses.tokenDpo({ logProbability_t, referenceLogProbability_t, sequence_t, ...settings }) // −log σ(1), twice
 * ```
 */
export const tokenDpo = ({
  logProbability_t,
  referenceLogProbability_t,
  sequence_t,
  beta,
  labelSmoothing,
  sequences,
}: DpoInputs): TokenPairs => {
  const { shape } = logProbability_t
  expectShape("tokenDpo", shape, { referenceLogProbability_t, sequence_t })
  const numbers = flatten(sequence_t)
  const belongs = cast(not(less(numbers, 0)), "f32")
  const pairs = Math.ceil(sequences / 2)
  // Tokens of no answer share two rows after those of the answers.
  const rows = where(less(numbers, 0), 2 * pairs, numbers)
  const perAnswer = (x_t: Tensor): Tensor => scatterAdd(rows, mul(flatten(x_t), belongs), 2 * pairs + 2)
  const rewards = mul(perAnswer(sub(logProbability_t, referenceLogProbability_t)), beta)
  const lengths = maximum(scatterAdd(rows, belongs, 2 * pairs + 2), 1)

  const byPair = reshape(rewards, [pairs + 1, 2])
  const chosen = slice(byPair, [0, 0], [pairs + 1, 1])
  const rejected = slice(byPair, [0, 1], [pairs + 1, 1])
  const margin = sub(chosen, rejected)
  // −log σ(m) is softplus(−m).
  const loss = add(mul(softplus(neg(margin)), 1 - labelSmoothing), mul(softplus(margin), labelSmoothing))

  const perToken = (x: Tensor): Tensor => reshape(gather(x, rows), shape)
  const toTokens = (x: Tensor): Tensor => perToken(reshape(broadcastTo(x, [pairs + 1, 2]), [2 * pairs + 2]))
  const length_t = perToken(lengths)
  return {
    loss_t: div(toTokens(loss), length_t),
    share_t: div(mul(reshape(belongs, shape), 0.5), length_t),
    chosen_t: toTokens(chosen),
    rejected_t: toTokens(rejected),
    accuracy_t: toTokens(cast(greater(margin, 0), "f32")),
  }
}
