/** Computes V-trace: value targets and advantages from rollouts of another policy. `Returns.ts` exports it. */
import { exp } from "../../base/rng/Elementary.ts"
import {
  checkFromZero,
  checkRates,
  countedRewards,
  emptyLike,
  isDone,
  nextValue,
  type Numbers,
  type ReturnInputs,
  shapeOf,
} from "./inputs.ts"

export interface VtraceInputs<A extends Numbers> extends Omit<ReturnInputs<A>, "out"> {
  /** The differences log π(a) − log μ(a), where π is the learner's policy and μ the policy that acted. */
  readonly logRatios: A
  /** The λ of the trace; 1 by default, as in the paper's main text. */
  readonly lambda?: number
  /** The bounds of the ratio π/μ, 1 by default, which may be infinite: ρ̄ affects which policy's value is learned, and c̄ the speed. */
  readonly rhoBar?: number
  readonly cBar?: number
}

export interface Vtrace<A extends Numbers> {
  /** The value targets v_t. */
  readonly targets: A
  /** The weights of the policy gradient, ρ_t (r_t + γ v_{t+1} − V_t). */
  readonly advantages: A
}

/**
 * Computes V-trace targets (Espeholt et al. 2018, arXiv:1802.01561), with ρ_t = min(ρ̄, π/μ) and c_t = λ min(c̄, π/μ):
 *
 *     v_t = V_t + ρ_t (r_t + γ v'_t − V_t) + γ c_t (1 − done_t) (v_{t+1} − V_{t+1})
 *
 * V_t is the value of observation t. v'_t is the value of the observation after step t: 0 if the episode terminated
 * there, the value of its final observation if it was truncated there, else V_{t+1}. done_t is 1 if the episode ended
 * in step t, else 0. If π = μ and λ = 1, the targets are the n-step returns.
 *
 * @example
 * ```ts
 * Returns.vtrace({
 *   rewards: Float64Array.of(1, 1),
 *   values: Float64Array.of(0, 0),
 *   lastValues: Float64Array.of(10),
 *   terminated: Uint8Array.of(0, 0),
 *   logRatios: Float64Array.of(Math.log(0.5), 0),
 *   gamma: 0.5,
 * }) // { targets: [2, 6], advantages: [2, 6] }
 * ```
 */
export const vtrace = <A extends Numbers>(inputs: VtraceInputs<A>): Vtrace<A> => {
  const { values, lastValues, logRatios, gamma, lambda = 1, rhoBar = 1, cBar = 1 } = inputs
  const { steps, envs } = shapeOf(inputs, { logRatios })
  checkRates({ lambda })
  checkFromZero({ rhoBar, cBar })
  const rewards = countedRewards(inputs)
  const targets = emptyLike(rewards)
  const advantages = emptyLike(rewards)
  /** For each env, v_t − V_t of the row that was computed last. */
  const carry = new Float64Array(envs)
  for (let t = steps - 1; t >= 0; t--) {
    const isLast = t === steps - 1
    for (let n = 0; n < envs; n++) {
      const row = t * envs + n
      const ratio = exp(logRatios[row])
      const rho = Math.min(rhoBar, ratio)
      const done = isDone(inputs, row)
      const nextV = nextValue(inputs, row, isLast ? lastValues : values, isLast ? n : row + envs)
      // The surplus is v_{t+1} − V_{t+1}; after the end of the rollout or of the episode it is 0.
      const surplus = done || isLast ? 0 : carry[n]
      carry[n] = rho * (rewards[row] + gamma * nextV - values[row]) + gamma * lambda * Math.min(cBar, ratio) * surplus
      targets[row] = values[row] + carry[n]
      advantages[row] = rho * (rewards[row] + gamma * (nextV + surplus) - values[row])
    }
  }
  return { targets, advantages }
}
