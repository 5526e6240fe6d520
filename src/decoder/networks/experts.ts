/**
 * Computes feed-forward networks of which a router chooses some for each token (mixture of experts, Shazeer et al. 2017,
 * arXiv:1701.06538).
 *
 * The graph computes all experts of all tokens as one wide network, and multiplies the units of experts that were not chosen
 * by zero. So a step costs as much as with all experts, but it needs only plain products.
 *
 * A step can return the experts that it chose, and another program can use these experts in the place of its own choice
 * (router replay). The shares of the experts are always computed by the router, so gradients flow into it.
 */
import {
  add,
  argMax,
  concat,
  div,
  greaterEqual,
  less,
  matmul,
  mul,
  oneHot,
  reshape,
  slice,
  softmax,
  stopGradient,
  sum,
  where,
} from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Weights } from "../../rl/model/trunk.ts"
import type { Experts } from "./DecoderConfig.ts"
import { expertNames, weightOf } from "./parameters.ts"

/** Says where chosen experts come from, or go to. Both are i32 [tokens, perToken] for each layer. */
export interface Routing {
  /** Returns the experts that were recorded earlier; −1 for a token without a record, whose experts the router chooses. */
  readonly replayed?: (layer: number) => Tensor
  /** Is called with the experts that the router chooses, the first one having the highest score, in the order of the layers. */
  readonly record?: (chosen: Tensor) => void
}

/** Makes a routing that records the experts of all layers. `all` returns them, i32 [tokens, layers · perToken]. */
export const recordingRouting = (): { readonly routing: Routing; readonly all: () => Tensor } => {
  const layers: Array<Tensor> = []
  return { routing: { record: (chosen) => void layers.push(chosen) }, all: () => concat(layers, 1) }
}

interface ExpertOptions {
  readonly weights: Weights
  readonly experts: Experts
  readonly routing?: Routing | undefined
}

/** Computes the outputs of a layer's experts for `x` [tokens, hiddenSize]. */
export const expertOutputs = (
  { weights, experts, routing }: ExpertOptions,
  layer: number,
  x: Tensor,
  activate: (x: Tensor) => Tensor,
): Tensor => {
  const { count, units, perToken, normalised } = experts
  const [tokens] = x.shape
  const names = expertNames(layer)
  const product = (name: string): Tensor => matmul(x, weightOf(weights, name), { transposeB: true })
  const scores = product(names.router)
  const { mask, chosen } = chooseExperts(scores, perToken)
  routing?.record?.(chosen)
  const replayed = routing?.replayed?.(layer)
  const shares = mul(softmax(scores), replayed === undefined ? mask : replayedMask(replayed, mask))
  const weighted = normalised ? div(shares, sum(shares, -1, { keepDims: true })) : shares
  const hidden = mul(activate(product(names.gate)), product(names.up))
  const shared = mul(reshape(hidden, [tokens, count, units]), reshape(weighted, [tokens, count, 1]))
  return matmul(reshape(shared, [tokens, count * units]), weightOf(weights, names.down), { transposeB: true })
}

/** A score below all others. */
const lowest = -3e38

/**
 * Chooses the experts with the `perToken` highest scores of each row. The first of equal scores is higher. The mask is 1 for
 * these experts, and 0 for the others.
 */
const chooseExperts = (scores: Tensor, perToken: number): { readonly mask: Tensor; readonly chosen: Tensor } => {
  const [tokens, count] = scores.shape
  let rest = stopGradient(scores)
  const indices: Array<Tensor> = []
  const masks: Array<Tensor> = []
  for (let at = 0; at < perToken; at++) {
    const index = argMax(rest)
    const best = oneHot(index, count)
    indices.push(reshape(index, [tokens, 1]))
    masks.push(best)
    rest = where(less(best, 0.5), rest, lowest)
  }
  return { mask: masks.reduce(add), chosen: concat(indices, 1) }
}

/** Returns the mask of recorded experts; for a token without a record, the mask of its router. */
const replayedMask = (replayed: Tensor, mask: Tensor): Tensor => {
  const [tokens, perToken] = replayed.shape
  const [, count] = mask.shape
  // Backends differ in what they make of negative indices.
  const indices = where(greaterEqual(replayed, 0), replayed, 0)
  const ones = Array.from({ length: perToken }, (_, at) =>
    oneHot(reshape(slice(indices, [0, at], [tokens, 1]), [tokens]), count),
  )
  return where(greaterEqual(slice(replayed, [0, 0], [tokens, 1]), 0), ones.reduce(add), mask)
}
