/**
 * Computes targets and losses of algorithms that learn a policy with one or more critics, such as DDPG, TD3, SAC (also
 * for discrete actions) and TQC.
 *
 * Names carry the time index, as in `qLearning.ts`: a transition leads from the state s_tm1 (time t − 1) to the reward
 * `r_t` and the state s_t. `q_tm1` and `q_t` are lists: each critic's values of an action in s_tm1, and of an action in
 * s_t, each of shape [rows]. In formulas, Q is a critic, Q′ its target network, π and μ are policies, and α is the
 * temperature, the weight of the entropy.
 *
 * @example
 * ```ts
 * const [r_t, discount_t] = [Graph.constant([1]), Graph.constant([0.5])]
 * const q_t = [Graph.constant([4]), Graph.constant([6])] as const
 * const target = Losses.softTarget({ r_t, discount_t, q_t, logProbability_t: Graph.constant([-2]), alpha: 0.1 }) // [3.1]
 * const q_tm1 = [Graph.constant([3]), Graph.constant([4])] as const
 * const criticLoss = Losses.criticLoss({ q_tm1, target }) // 0.1² + 0.9²
 * ```
 */
import {
  add,
  cast,
  clip,
  constant,
  equal,
  exp,
  expandDims,
  less,
  mean,
  minimum,
  mul,
  neg,
  reshape,
  square,
  sub,
  sum,
} from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { tdTarget } from "./qLearning.ts"
import { fail } from "../../tensor/graph/ops/core.ts"
import { expectShape, type Tensors } from "./shapes.ts"

type CriticValues = ReadonlyArray<Tensor>

/** Names each critic's values, for error messages. */
const numbered = (name: string, values: CriticValues): Tensors<string> =>
  Object.fromEntries(values.map((value, index) => [`${name}[${index}]`, value]))

const smallest = (values: CriticValues): Tensor => values.reduce((one, other) => minimum(one, other))

interface Transition {
  readonly r_t: Tensor
  readonly discount_t: Tensor
  /** The target critics' values of the next observation with an action that the policy chooses for it. */
  readonly q_t: CriticValues
}

/**
 * Computes the target of clipped double Q-learning (Fujimoto et al. 2018, arXiv:1802.09477, equation 10): it uses the
 * smallest of the critics' values, because larger ones overestimate. y = r_t + discount_t · min(Q′₁, Q′₂). With one critic it
 * is the target of DDPG (Lillicrap et al. 2015, arXiv:1509.02971).
 */
export const clippedDoubleQTarget = ({ r_t, discount_t, q_t }: Transition): Tensor =>
  tdTarget({ r_t, discount_t, v_t: smallest(q_t) })

/**
 * Computes SAC's target for all critics (Haarnoja et al. 2018, arXiv:1812.05905, equations 2 and 3), in which the
 * policy's entropy is part of the value: y = r_t + discount_t · (min(Q′₁, Q′₂) − α log π(a′ | s_t)). The action a′ is
 * drawn from the policy in s_t; `q_t` holds the values of a′, and `logProbability_t` is log π(a′ | s_t).
 */
export const softTarget = ({
  r_t,
  discount_t,
  q_t,
  logProbability_t,
  alpha,
}: Transition & Tensors<"logProbability_t"> & { readonly alpha: Tensor | number }): Tensor => {
  expectShape("softTarget", q_t[0].shape, { logProbability_t })
  return tdTarget({ r_t, discount_t, v_t: sub(smallest(q_t), mul(alpha, logProbability_t)) })
}

/**
 * Computes the value of a state, including entropy, under a policy over discrete actions (Christodoulou 2019,
 * arXiv:1910.07207, equation 10): V = Σₐ π(a | s) (Q(s, a) − α log π(a | s)). `q_t` has the values of all actions and
 * `logProbabilities_t` their log π, both of shape [rows, actions].
 */
export const softValue = ({
  q_t,
  logProbabilities_t,
  alpha,
}: Tensors<"q_t" | "logProbabilities_t"> & { readonly alpha: Tensor | number }): Tensor => {
  expectShape("softValue", q_t.shape, { logProbabilities_t })
  return sum(mul(exp(logProbabilities_t), sub(q_t, mul(alpha, logProbabilities_t))), -1)
}

/** Computes the sum of all critics' squared errors to one target, averaged over rows: E[(Q₁ − y)² + (Q₂ − y)²]. */
export const criticLoss = ({ q_tm1, target }: Tensors<"target"> & { readonly q_tm1: CriticValues }): Tensor => {
  expectShape("criticLoss", target.shape, numbered("q_tm1", q_tm1))
  return mean(q_tm1.map((values) => square(sub(values, target))).reduce((sum, errors) => add(sum, errors)))
}

/**
 * Returns the `count` lowest numbers of each row, in increasing order: [rows, n] → [rows, count]. TQC's target uses the
 * lowest quantiles of all its critics (Kuznetsov et al. 2020, arXiv:2005.04269, equation 6), because the highest ones
 * overestimate.
 */
export const lowest = (values: Tensor, count: number): Tensor => {
  const [, n] = values.shape
  if (values.shape.length !== 2 || count > n) fail("lowest", `expected [rows, n] with n at least ${count}`, values)
  // The rank of a number is the count of lower numbers in its row, plus the equal ones before it. [rows, n, n] → [rows,
  // n].
  const [each, others] = [expandDims(values, 2), expandDims(values, 1)]
  const isBefore = constant(
    Float32Array.from({ length: n * n }, (_, at) => (at % n < Math.floor(at / n) ? 1 : 0)),
    [n, n],
  )
  const ties = mul(cast(equal(others, each), "f32"), isBefore)
  const ranks = sum(add(cast(less(others, each), "f32"), ties), 2)
  const places = constant(
    Float32Array.from({ length: count }, (_, place) => place),
    [count, 1],
  )
  return sum(mul(cast(equal(expandDims(ranks, 1), places), "f32"), others), 2)
}

/**
 * Computes the policy loss of SAC (Haarnoja et al. 2018, equation 7): E[α log π(a | s) − min(Q₁, Q₂)]. Draw the actions
 * with the reparameterisation trick, so that the gradient flows through the actions into the policy.
 */
export const softPolicyLoss = ({
  q,
  logProbability,
  alpha,
}: Tensors<"logProbability"> & { readonly q: CriticValues; readonly alpha: Tensor | number }): Tensor => {
  expectShape("softPolicyLoss", logProbability.shape, numbered("q", q))
  return mean(sub(mul(alpha, logProbability), smallest(q)))
}

/**
 * Computes the gradient of SAC's temperature loss −log α · E[log π + H̄] with respect to log α, of shape [1]; H̄ is the
 * target entropy. This is equation 18 of Haarnoja et al. 2018 with log α in place of α, as in the authors' code.
 * Gradient descent raises the temperature α while the policy's entropy is below H̄.
 */
export const temperatureGradient = ({
  logProbability,
  targetEntropy,
}: Tensors<"logProbability"> & { readonly targetEntropy: number }): Tensor =>
  reshape(neg(mean(add(logProbability, targetEntropy))), [1])

/**
 * Computes the policy loss of DDPG and TD3, the deterministic policy gradient (Silver et al. 2014): −E[Q₁(s, μ(s))]. `q` holds
 * the first critic's values of the policy's actions μ(s).
 */
export const deterministicPolicyLoss = (q: Tensor): Tensor => neg(mean(q))

/**
 * Computes the action a′ whose value in s_t is part of TD3's target (Fujimoto et al. 2018, equation 14): the target
 * policy's action μ′(s_t) plus clipped noise, which averages the target over nearby actions. Actions are from −1 to 1:
 * a′ = clip(μ′(s_t) + clip(ε σ, −c, c), −1, 1), with standard normal noise ε, `deviation` σ and `bound` c.
 */
export const smoothedAction = ({
  action,
  noise,
  deviation,
  bound,
}: Tensors<"action" | "noise"> & { readonly deviation: number; readonly bound: number }): Tensor => {
  expectShape("smoothedAction", action.shape, { noise })
  return clip(add(action, clip(mul(noise, deviation), -bound, bound)), -1, 1)
}
