/**
 * Computes losses of algorithms that learn the distribution of an action's return instead of its mean, as n quantiles
 * or as the probabilities of n fixed returns (categories). Tensors of distributions have the shape [rows, n]; all other
 * names are as in `qLearning.ts`.
 *
 * @example
 * ```ts
 * const [r_t, discount_t] = [Graph.constant([1]), Graph.constant([0.5])]
 * const quantiles_t = Graph.constant([2, 4], [1, 2])
 * const target = Losses.quantileTarget({ r_t, discount_t, quantiles_t }) // [1 + 0.5 · 2, 1 + 0.5 · 4]
 * Losses.quantileLoss({ quantiles_tm1: Graph.constant([2, 3], [1, 2]), target }) // [⅛]
 * ```
 */
import {
  abs,
  add,
  argMax,
  cast,
  clip,
  constant,
  div,
  expandDims,
  greater,
  huber,
  less,
  log,
  maximum,
  mean,
  mul,
  oneHot,
  relu,
  stopGradient,
  sub,
  sum,
  where,
} from "../../tensor/graph/ops.ts"
import { fail } from "../../tensor/graph/ops/core.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { type Categories, returnsOf } from "../model/valueDistribution.ts"
import { expectShape, type Tensors } from "./shapes.ts"

/** Selects the distribution of one action in each row of `distributions`, of shape [rows, actions, n]. */
export const distributionOfAction = (distributions: Tensor, actions: Tensor): Tensor => {
  if (distributions.shape.length !== 3) fail("distributionOfAction", "expected [rows, actions, n]", distributions)
  const [rows, count] = distributions.shape
  expectShape("distributionOfAction", [rows], { actions })
  return sum(mul(distributions, expandDims(oneHot(actions, count), 2)), 1)
}

/** Selects the distribution of the best action in each row, by action values of shape [rows, actions]. */
export const distributionOfBest = (distributions: Tensor, values: Tensor): Tensor =>
  distributionOfAction(distributions, argMax(values))

interface QuantileTarget extends Tensors<"r_t" | "discount_t"> {
  /** The quantiles of the return from the next observation on, of shape [rows, n]. */
  readonly quantiles_t: Tensor
}

/** Computes the quantiles of the target, without a gradient: yⱼ = r_t + discount_t · θⱼ(s_t). */
export const quantileTarget = ({ r_t, discount_t, quantiles_t }: QuantileTarget): Tensor => {
  expectShape("quantileTarget", [quantiles_t.shape[0]], { r_t, discount_t })
  return stopGradient(add(expandDims(r_t, 1), mul(expandDims(discount_t, 1), quantiles_t)))
}

/**
 * Computes the loss of quantile regression of each row (Dabney et al. 2017, arXiv:1710.10044, Algorithm 1): Σᵢ meanⱼ
 * |τᵢ − 1{yⱼ < θᵢ}| · huber(yⱼ − θᵢ), where θᵢ is the quantile for the probability τᵢ = (i + ½) / n, and the yⱼ are the
 * quantiles of the target, of shape [rows, m].
 */
export const quantileLoss = ({ quantiles_tm1, target }: Tensors<"quantiles_tm1" | "target">): Tensor => {
  if (quantiles_tm1.shape.length !== 2) fail("quantileLoss", "quantiles_tm1: expected [rows, n]", quantiles_tm1)
  const [rows, count] = quantiles_tm1.shape
  expectShape("quantileLoss", [rows, target.shape[1]], { target })
  // The errors have the shape [rows, n, m].
  const errors = sub(expandDims(target, 1), expandDims(quantiles_tm1, 2))
  const probabilities = constant(
    Float32Array.from({ length: count }, (_, index) => (index + 0.5) / count),
    [count, 1],
  )
  const weights = stopGradient(abs(sub(probabilities, cast(less(errors, 0), "f32"))))
  return sum(mean(mul(weights, huber(errors)), 2), 1)
}

interface CategoricalTarget extends Tensors<"r_t" | "discount_t"> {
  /** The probabilities of the categories for the return from the next observation on, of shape [rows, count]. */
  readonly probabilities_t: Tensor
  readonly categories: Categories
}

/**
 * Computes the probabilities of the target, without a gradient (Bellemare et al. 2017, arXiv:1707.06887, Algorithm 1): each
 * return z becomes r_t + discount_t · z, limited to the range of the categories, and its probability is divided between the
 * two categories next to it, so that the mean stays the same.
 */
export const categoricalTarget = ({ r_t, discount_t, probabilities_t, categories }: CategoricalTarget): Tensor => {
  const { count, min, max } = categories
  const [rows] = probabilities_t.shape
  expectShape("categoricalTarget", [rows, count], { probabilities_t })
  expectShape("categoricalTarget", [rows], { r_t, discount_t })
  const moved = add(expandDims(r_t, 1), mul(expandDims(discount_t, 1), returnsOf(categories)))
  // The return as a position among the categories, from 0 to count − 1. A neighbouring category gets 1 minus its
  // distance.
  const positions = clip(div(sub(moved, min), (max - min) / (count - 1)), 0, count - 1)
  const indices = constant(
    Float32Array.from({ length: count }, (_, index) => index),
    [count, 1],
  )
  const shares = relu(sub(1, abs(sub(expandDims(positions, 1), indices))))
  return stopGradient(sum(mul(shares, expandDims(probabilities_t, 1)), 2))
}

/**
 * Computes KL(target ‖ p) of each row: Σᵢ targetᵢ (log targetᵢ − log pᵢ). Its gradient equals that of the
 * cross-entropy, but its value is 0 if both distributions are equal, so it can also serve as the row's priority (Hessel
 * et al. 2018, arXiv:1710.02298).
 */
export const categoricalDivergence = ({
  logProbabilities_tm1,
  target,
}: Tensors<"logProbabilities_tm1" | "target">): Tensor => {
  expectShape("categoricalDivergence", logProbabilities_tm1.shape, { target })
  const logTarget = where(greater(target, 0), log(maximum(target, 1e-30)), 0)
  return sum(mul(target, sub(logTarget, logProbabilities_tm1)), -1)
}
