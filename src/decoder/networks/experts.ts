/**
 * Computes feed-forward networks of which a router chooses some for each token (mixture of experts, Shazeer et al. 2017,
 * arXiv:1701.06538).
 *
 * The graph computes all experts of all tokens as one wide network, and multiplies the units of experts that were not chosen
 * by zero. So a step costs as much as with all experts, but it needs only plain products.
 */
import {
  add,
  argMax,
  div,
  less,
  matmul,
  mul,
  oneHot,
  reshape,
  softmax,
  stopGradient,
  sum,
  where,
} from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Weights } from "../../rl/model/trunk.ts"
import type { Experts } from "./DecoderConfig.ts"
import { expertNames, weightOf } from "./parameters.ts"

interface ExpertOptions {
  readonly weights: Weights
  readonly experts: Experts
}

/** Computes the outputs of a layer's experts for `x` [tokens, hiddenSize]. */
export const expertOutputs = (
  { weights, experts }: ExpertOptions,
  layer: number,
  x: Tensor,
  activate: (x: Tensor) => Tensor,
): Tensor => {
  const { count, units, perToken, normalised } = experts
  const [tokens] = x.shape
  const names = expertNames(layer)
  const product = (name: string): Tensor => matmul(x, weightOf(weights, name), { transposeB: true })
  const scores = product(names.router)
  const shares = mul(softmax(scores), chosenMask(scores, perToken))
  const weighted = normalised ? div(shares, sum(shares, -1, { keepDims: true })) : shares
  const hidden = mul(activate(product(names.gate)), product(names.up))
  const shared = mul(reshape(hidden, [tokens, count, units]), reshape(weighted, [tokens, count, 1]))
  return matmul(reshape(shared, [tokens, count * units]), weightOf(weights, names.down), { transposeB: true })
}

/** A score below all others. */
const lowest = -3e38

/** Returns ones for the `chosen` highest scores of each row and zeros for the others. The first of equal scores is higher. */
const chosenMask = (scores: Tensor, chosen: number): Tensor => {
  const [, count] = scores.shape
  let rest = stopGradient(scores)
  let mask: Tensor | undefined
  for (let at = 0; at < chosen; at++) {
    const best = oneHot(argMax(rest), count)
    mask = mask === undefined ? best : add(mask, best)
    rest = where(less(best, 0.5), rest, lowest)
  }
  return mask ?? mul(scores, 0)
}
