/**
 * Computes prediction errors that measure how new a transition is. The algorithms RND and curiosity reward large
 * errors.
 */
import { div, maximum, mean, mul, neg, square, stopGradient, sub, sum } from "../../tensor/graph/ops.ts"
import { categorical } from "../../tensor/graph/distributions.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { expectShape, type Tensors } from "./shapes.ts"

/**
 * Computes the error of random network distillation (Burda et al. 2018, arXiv:1810.12894), for each row: the mean over
 * features of (f̂(s) − f(s))². `fixed` holds the features f(s) of a random network that is never trained: no gradient
 * flows through them. `predicted` holds the features f̂(s) of the network that learns to predict them.
 *
 * @example
 * ```ts
 * const [predicted, fixed] = [Graph.constant([1, 2], [1, 2]), Graph.constant([1, 0], [1, 2])]
 * Losses.distillationError({ predicted, fixed }) // [2]
 * ```
 */
export const distillationError = ({ predicted, fixed }: Tensors<"predicted" | "fixed">): Tensor => {
  expectShape("distillationError", predicted.shape, { fixed })
  return mean(square(sub(predicted, stopGradient(fixed))), 1)
}

/**
 * Returns the mean of the rows whose mask is 1, or 0 if there are none. The mask holds a 0 or a 1 for each row.
 *
 * @example
 * ```ts
 * Losses.maskedMean(Graph.constant([1, 2, 6]), Graph.constant([1, 0, 1])) // 3.5
 * ```
 */
export const maskedMean = (rows: Tensor, mask: Tensor): Tensor => {
  expectShape("maskedMean", rows.shape, { mask })
  return div(sum(mul(rows, mask)), maximum(sum(mask), 1))
}

/**
 * Computes the error of a forward model, which predicts the next features from the features before and the action
 * (Pathak et al. 2017, arXiv:1705.05363, equation 5). The error of a row is half the mean over features of
 * (φ̂(s_t+1) − φ(s_t+1))². No gradient flows through the features φ(s_t+1): otherwise they would shrink, because small
 * features are easy to predict.
 *
 * @example
 * ```ts
 * const [predicted_tp1, features_tp1] = [Graph.constant([1, 2], [1, 2]), Graph.constant([1, 0], [1, 2])]
 * Losses.forwardError({ predicted_tp1, features_tp1 }) // [1]
 * ```
 */
export const forwardError = ({ predicted_tp1, features_tp1 }: Tensors<"predicted_tp1" | "features_tp1">): Tensor => {
  expectShape("forwardError", predicted_tp1.shape, { features_tp1 })
  return mul(mean(square(sub(predicted_tp1, stopGradient(features_tp1))), 1), 0.5)
}

/**
 * Computes the loss of an inverse model (Pathak et al. 2017, equation 2), which infers an action from the features
 * before and after it. For discrete actions [rows], `inferred` holds logits, and the loss is the mean cross-entropy.
 * For continuous actions [rows, size], `inferred` holds actions, and the loss is the mean squared error.
 *
 * @example
 * ```ts
 * const logits = Graph.constant([0, 0], [1, 2])
 * Losses.inverseLoss(logits, Graph.constant(Int32Array.of(1))) // log 2
 * ```
 */
export const inverseLoss = (inferred: Tensor, actions: Tensor): Tensor =>
  actions.dtype === "i32"
    ? neg(mean(categorical(inferred).logProbability(actions)))
    : mean(square(sub(inferred, actions)))
