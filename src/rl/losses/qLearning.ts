/**
 * Computes values, targets and weighted means for algorithms that learn the values of discrete actions. `dqnLosses.ts` has
 * the losses.
 *
 * Names carry the time index: a transition leads from `s_tm1` (time t − 1) by the action `a_tm1` to the reward `r_t`
 * and the observation `s_t`; `q_tm1` and `q_t` are the values of all actions in `s_tm1` and `s_t`, of shape [rows,
 * actions]. `discount_t` is the factor of the value of `s_t`: γ, or γⁿ after n steps, or 0 where the episode
 * terminated. In formulas, Q is the online network and Q′ the target network.
 *
 * @example
 * ```ts
 * const q_t = Graph.constant([1, 5], [1, 2]) // the target network's values
 * const selector_t = Graph.constant([4, 3], [1, 2]) // the online network's values
 * const [r_t, discount_t] = [Graph.constant([2]), Graph.constant([0.9])]
 * Losses.tdTarget({ r_t, discount_t, v_t: Losses.qLearningValue({ q_t }) }) // [2 + 0.9 · 5]
 * Losses.tdTarget({ r_t, discount_t, v_t: Losses.doubleQValue({ q_t, selector_t }) }) // [2 + 0.9 · 1]
 * ```
 */
import {
  abs,
  add,
  argMax,
  div,
  max,
  mean,
  mul,
  oneHot,
  sign,
  sqrt,
  square,
  stopGradient,
  sub,
  sum,
} from "../../tensor/graph/ops.ts"
import { fail } from "../../tensor/graph/ops/core.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { expectShape, type Tensors } from "./shapes.ts"

/** Selects the value of one action in each row. `q` has shape [rows, actions]; `actions` and the result have shape [rows]. */
export const valueOfAction = (q: Tensor, actions: Tensor): Tensor => {
  if (q.shape.length !== 2) fail("valueOfAction", "q: expected [rows, actions]", q)
  expectShape("valueOfAction", [q.shape[0]], { actions })
  return sum(mul(q, oneHot(actions, q.shape[1])), -1)
}

interface TdTarget {
  readonly r_t: Tensor
  readonly discount_t: Tensor
  /** The estimated value of the next observation, of shape [rows]. */
  readonly v_t: Tensor
}

/** Computes the target of temporal differences (Sutton 1988), without a gradient: y = r_t + discount_t · v_t. */
export const tdTarget = ({ r_t, discount_t, v_t }: TdTarget): Tensor => {
  expectShape("tdTarget", v_t.shape, { r_t, discount_t })
  return stopGradient(add(r_t, mul(discount_t, v_t)))
}

/** Computes Q-learning's value of the next observation (Watkins and Dayan 1992; Mnih et al. 2015): maxₐ Q′(s_t, a). */
export const qLearningValue = ({ q_t }: { readonly q_t: Tensor }): Tensor => max(q_t, -1)

/**
 * Computes the value that double Q-learning gives to the next observation (van Hasselt et al. 2015, arXiv:1509.06461):
 * the values `selector_t` of the online network select the action, and the values `q_t` of the target network evaluate
 * it: Q′(s_t, argmaxₐ Q(s_t, a)).
 */
export const doubleQValue = ({ q_t, selector_t }: Tensors<"q_t" | "selector_t">): Tensor => {
  expectShape("doubleQValue", q_t.shape, { selector_t })
  return valueOfAction(q_t, argMax(selector_t))
}

/** The ε of `rescaled`, as in R2D2. */
const slope = 1e-3

/**
 * Transforms values to a scale on which values of very different sizes can be learned (Pohlen et al. 2018,
 * arXiv:1805.11593): h(x) = sign(x) (√(|x| + 1) − 1) + ε x with ε = 0.001.
 */
export const rescaled = (x: Tensor): Tensor => add(mul(sign(x), sub(sqrt(add(abs(x), 1)), 1)), mul(x, slope))

/**
 * Computes the inverse of `rescaled`: h⁻¹(x) = sign(x) (((√(1 + 4 ε (|x| + 1 + ε)) − 1) / 2ε)² − 1). The root is computed as
 * 2 y / (√(1 + 4 ε y) + 1) with y = |x| + 1 + ε, which is the same number without a difference of nearly equal ones.
 */
export const unrescaled = (x: Tensor): Tensor => {
  const y = add(abs(x), 1 + slope)
  const root = div(mul(y, 2), add(sqrt(add(mul(y, 4 * slope), 1)), 1))
  return mul(sign(x), sub(square(root), 1))
}

/** Computes the mean of the rows x. With the importance weights w of prioritised replay, computes the mean of w · x. */
export const weightedMean = (rows: Tensor, importance?: Tensor): Tensor => {
  if (importance === undefined) return mean(rows)
  expectShape("weightedMean", rows.shape, { importance })
  return mean(mul(importance, rows))
}
