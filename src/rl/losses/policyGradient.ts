/**
 * Computes losses of policies and critics that learn from rollouts or demonstrations, and the parts and metrics of such
 * losses. A loss is a scalar to minimise, averaged over rows.
 *
 * Names carry the time index: in row t the action a_t was chosen in the state s_t. `logProbability_t` is log
 * π(a_t | s_t) under the weights that are learned, `logProbabilityOld_t` under the weights that chose the action a_t.
 * `advantage_t` (A_t) is the advantage of a_t, `v_t` the critic's value of s_t, `vOld_t` its value at the time of the
 * rollout, and `target_t` (G_t) the return that `v_t` is trained towards. These all have the shape [rows].
 */
import * as Graph from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { expectShape, type Tensors } from "./shapes.ts"

const { abs, add, cast, clip, div, exp, maximum, mean, minimum, mul, neg, sqrt, square, stopGradient, sub } = Graph

/**
 * Computes the loss of the policy gradient (Williams 1992; with an advantage, Mnih et al. 2016, arXiv:1602.01783):
 * −E[log π(a_t | s_t) A_t]. No gradient flows through the advantage.
 *
 * @example
 * ```ts
 * const logProbability_t = Graph.constant([-1, -2])
 * Losses.policyGradient({ logProbability_t, advantage_t: Graph.constant([1, -1]) }) // −(−1 + 2) / 2
 * ```
 */
export const policyGradient = ({
  logProbability_t,
  advantage_t,
}: Tensors<"logProbability_t" | "advantage_t">): Tensor => {
  expectShape("policyGradient", logProbability_t.shape, { advantage_t })
  return neg(mean(mul(logProbability_t, stopGradient(advantage_t))))
}

/**
 * Returns how much likelier the actions have become: the ratio r_t = π(a_t | s_t) / π_old(a_t | s_t), and its logarithm.
 *
 * @example
 * ```ts
 * const logProbability_t = Graph.constant([Math.log(0.5)])
 * Losses.importanceRatio({ logProbability_t, logProbabilityOld_t: Graph.constant([Math.log(0.25)]) }).ratio_t // [2]
 * ```
 */
export const importanceRatio = ({
  logProbability_t,
  logProbabilityOld_t,
}: Tensors<"logProbability_t" | "logProbabilityOld_t">): { readonly ratio_t: Tensor; readonly logRatio_t: Tensor } => {
  expectShape("importanceRatio", logProbability_t.shape, { logProbabilityOld_t })
  const logRatio_t = sub(logProbability_t, logProbabilityOld_t)
  return { ratio_t: exp(logRatio_t), logRatio_t }
}

/**
 * Computes PPO's clipped objective of each row: min(r_t A_t, clip(r_t, 1 − low, 1 + high) A_t). The bounds can be tensors.
 *
 * @example
 * ```ts
 * const ratio_t = Graph.constant([0.5, 2])
 * const advantage_t = Graph.constant([1, 1])
 * Losses.clippedObjective({ ratio_t, advantage_t, low: 0.2, high: 0.28 }) // [0.5, 1.28]
 * ```
 */
export const clippedObjective = ({
  ratio_t,
  advantage_t,
  low,
  high,
}: Tensors<"ratio_t" | "advantage_t"> & {
  readonly low: number | Tensor
  readonly high: number | Tensor
}): Tensor => {
  const clipped =
    typeof low === "number" && typeof high === "number"
      ? clip(ratio_t, 1 - low, 1 + high)
      : minimum(maximum(ratio_t, sub(1, low)), add(1, high))
  return minimum(mul(ratio_t, advantage_t), mul(clipped, advantage_t))
}

/**
 * Computes PPO's clipped surrogate objective (Schulman et al. 2017, arXiv:1707.06347, equation 7), negated:
 * −E[min(r_t A_t, clip(r_t, 1 − ε, 1 + ε) A_t)].
 *
 * @example
 * ```ts
 * const ratio_t = Graph.constant([0.5, 2])
 * const advantage_t = Graph.constant([1, 1])
 * Losses.clippedSurrogate({ ratio_t, advantage_t, epsilon: 0.2 }) // −(0.5 + 1.2) / 2
 * ```
 */
export const clippedSurrogate = ({
  ratio_t,
  advantage_t,
  epsilon,
}: Tensors<"ratio_t" | "advantage_t"> & { readonly epsilon: number | Tensor }): Tensor => {
  expectShape("clippedSurrogate", ratio_t.shape, { advantage_t })
  return neg(mean(clippedObjective({ ratio_t, advantage_t, low: epsilon, high: epsilon })))
}

/**
 * Returns the share of rows whose importance ratio r_t lies outside 1 ± ε, where `clippedSurrogate` clips it.
 *
 * @example
 * ```ts
 * Losses.clipFraction({ ratio_t: Graph.constant([0.5, 1, 2, 1.1]), epsilon: 0.2 }) // 0.5
 * ```
 */
export const clipFraction = ({
  ratio_t,
  epsilon,
}: {
  readonly ratio_t: Tensor
  readonly epsilon: number | Tensor
}): Tensor => mean(cast(Graph.greater(abs(sub(ratio_t, 1)), epsilon), "f32"))

/**
 * Estimates KL(π_old ‖ π) from samples of π_old: E[(r_t − 1) − log r_t], which is never negative and has a low variance
 * (Schulman 2020, "Approximating KL Divergence", estimator k₃).
 *
 * @example
 * ```ts
 * const ratio_t = Graph.constant([1, 2])
 * Losses.approximateKl({ ratio_t, logRatio_t: Graph.log(ratio_t) }) // (0 + 1 − log 2) / 2
 * ```
 */
export const approximateKl = ({ ratio_t, logRatio_t }: Tensors<"ratio_t" | "logRatio_t">): Tensor =>
  mean(sub(sub(ratio_t, 1), logRatio_t))

/**
 * Computes the squared error of a critic: E[(V(s_t) − G_t)²].
 *
 * @example
 * ```ts
 * Losses.valueLoss({ v_t: Graph.constant([1, 2]), target_t: Graph.constant([0, 4]) }) // (1 + 4) / 2
 * ```
 */
export const valueLoss = ({ v_t, target_t }: { readonly v_t: Tensor; readonly target_t: Tensor }): Tensor => {
  expectShape("valueLoss", v_t.shape, { target_t })
  return mean(square(sub(v_t, target_t)))
}

/**
 * Computes the clipped error of a critic, as in OpenAI's baselines: the larger of the squared errors of its value and of
 * this value clipped to V_old(s_t) ± ε, E[max((V(s_t) − G_t)², (V_old(s_t) + clip(V(s_t) − V_old(s_t), −ε, ε) − G_t)²)].
 * Where the second is larger, no gradient flows.
 *
 * @example
 * ```ts
 * const [v_t, vOld_t, target_t] = [Graph.constant([2]), Graph.constant([0]), Graph.constant([3])]
 * Losses.clippedValueLoss({ v_t, vOld_t, target_t, epsilon: 0.5 }) // max((2 − 3)², (0.5 − 3)²)
 * ```
 */
export const clippedValueLoss = ({
  v_t,
  vOld_t,
  target_t,
  epsilon,
}: Tensors<"v_t" | "vOld_t" | "target_t"> & { readonly epsilon: number | Tensor }): Tensor => {
  expectShape("clippedValueLoss", v_t.shape, { vOld_t, target_t })
  const error = square(sub(v_t, target_t))
  const clipped = add(vOld_t, clipWithin(sub(v_t, vOld_t), epsilon))
  return mean(maximum(error, square(sub(clipped, target_t))))
}

/** Computes clip(x, −bound, bound); the bound can be a tensor. */
const clipWithin = (x: Tensor, bound: number | Tensor): Tensor =>
  typeof bound === "number" ? clip(x, -bound, bound) : minimum(maximum(x, neg(bound)), bound)

/**
 * Scales the values of a minibatch to mean 0 and standard deviation 1: (x − mean) / (deviation + 1e-8). The variance
 * divides by n − 1. A minibatch with a single row is returned unchanged.
 *
 * @example
 * ```ts
 * Losses.standardised(Graph.constant([1, 2, 3])) // [−1, 0, 1]
 * ```
 */
export const standardised = (x: Tensor): Tensor => {
  const [n] = x.shape
  if (n < 2) return x
  const centred = sub(x, mean(x))
  const variance = mul(mean(square(centred)), n / (n - 1))
  return div(centred, add(sqrt(variance), 1e-8))
}

/**
 * Computes the loss of behaviour cloning: the negative log likelihood of the actions, −E[log π(a_t | s_t)].
 *
 * @example
 * ```ts
 * Losses.behaviourCloning(Graph.constant([-1, -3])) // 2
 * ```
 */
export const behaviourCloning = (logProbability_t: Tensor): Tensor => neg(mean(logProbability_t))

/**
 * Computes the cross entropy between a policy and the probabilities that it should learn, such as the shares of a
 * search's visits in AlphaZero (Silver et al. 2018): −E[Σ_a π(a) log p(a | s)]. Both have the shape [rows, actions].
 *
 * @example
 * ```ts
 * const logProbabilities = Graph.logSoftmax(Graph.constant([0, 0], [1, 2]))
 * Losses.crossEntropy({ logProbabilities, target: Graph.constant([0.5, 0.5], [1, 2]) }) // log 2
 * ```
 */
export const crossEntropy = ({
  logProbabilities,
  target,
}: {
  readonly logProbabilities: Tensor
  readonly target: Tensor
}): Tensor => {
  expectShape("crossEntropy", logProbabilities.shape, { target })
  return neg(mean(Graph.sum(mul(target, logProbabilities), -1)))
}

/**
 * Returns the share of rows in which the policy's action (`chosen`) equals the demonstrated one (`actions`): a metric.
 *
 * @example
 * ```ts
 * const chosen = Graph.constant(Int32Array.of(1, 0))
 * Losses.accuracy(chosen, Graph.constant(Int32Array.of(1, 1))) // 0.5
 * ```
 */
export const accuracy = (chosen: Tensor, actions: Tensor): Tensor => {
  expectShape("accuracy", actions.shape, { chosen })
  return mean(cast(Graph.equal(chosen, actions), "f32"))
}
