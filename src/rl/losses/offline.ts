/**
 * Computes losses of algorithms that learn from a data set of transitions without playing: implicit Q-learning
 * (Kostrikov et al. 2021, arXiv:2110.06169) and conservative Q-learning. Tensors have the shape [rows], unless a
 * comment states another one.
 *
 * @example
 * ```ts
 * const [q_t, v_t] = [Graph.constant([3, 1]), Graph.constant([1, 2])]
 * const valueLoss = Losses.expectileLoss({ q_t, v_t, expectile: 0.7 }) // (0.7 · 2² + 0.3 · 1²) / 2
 * ```
 */
import {
  exp,
  less,
  logSumExp,
  mean,
  minimum,
  mul,
  neg,
  square,
  stopGradient,
  sub,
  where,
} from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { valueOfAction } from "./qLearning.ts"
import { expectShape, type Tensors } from "./shapes.ts"

/**
 * Computes the loss of a state's value V(s_t) as an expectile of the values Q(s_t, a_t) of its actions in the data
 * (equation 5): E[|τ − 1(u < 0)| u²] with u = Q(s_t, a_t) − V(s_t). With τ = ½, V is the mean of these values; with τ
 * near 1, V approaches the largest of them, the value of the best action in the data.
 */
export const expectileLoss = ({
  q_t,
  v_t,
  expectile,
}: Tensors<"q_t" | "v_t"> & { readonly expectile: number }): Tensor => {
  expectShape("expectileLoss", v_t.shape, { q_t })
  const difference = sub(stopGradient(q_t), v_t)
  return mean(mul(where(less(difference, 0), 1 - expectile, expectile), square(difference)))
}

/**
 * Computes the loss of advantage-weighted regression (Peng et al. 2019, arXiv:1910.00177; IQL's equation 7): it
 * imitates the actions in the data, and gives those with a larger advantage more weight: −E[min(exp(β A_t), limit) log
 * π(a_t | s_t)].
 *
 * @example
 * ```ts
 * const logProbability_t = Graph.constant([-1, -2])
 * const advantage_t = Graph.constant([0, Math.LN2])
 * Losses.advantageWeightedRegression({ logProbability_t, advantage_t, beta: 1, limit: 100 }) // (1 + 2 · 2) / 2
 * ```
 */
export const advantageWeightedRegression = ({
  logProbability_t,
  advantage_t,
  beta,
  limit,
}: Tensors<"logProbability_t" | "advantage_t"> & { readonly beta: number; readonly limit: number }): Tensor => {
  expectShape("advantageWeightedRegression", logProbability_t.shape, { advantage_t })
  const weight = minimum(exp(mul(advantage_t, beta)), limit)
  return neg(mean(mul(stopGradient(weight), logProbability_t)))
}

/**
 * Computes the penalty of conservative Q-learning for choices (Kumar et al. 2020, arXiv:2006.04779, equation 4): E[log Σₐ exp
 * Q(s_t, a) − Q(s_t, a_t)]. It lowers the values of all actions, the highest ones most, and raises those of the actions in the
 * data, so that a policy does not prefer actions that the data do not show. `q_t` has the values of all actions, of shape
 * [rows, actions], and `actions` the data's, of shape [rows]. Add it, times a weight, to a loss of action values.
 *
 * @example
 * ```ts
 * const q_t = Graph.constant([0, Math.log(3)], [1, 2])
 * Losses.conservativePenalty({ q_t, actions: Graph.constant(Int32Array.of(1)) }) // log(1 + 3) − log 3
 * ```
 */
export const conservativePenalty = ({ q_t, actions }: Tensors<"q_t" | "actions">): Tensor => {
  const taken = valueOfAction(q_t, actions)
  return mean(sub(logSumExp(q_t), taken))
}
