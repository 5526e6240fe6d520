/** Checks the inputs of generalised advantage estimation (GAE), which `sweep.ts` computes. The learners call `gae`. */
import { checkRates, countedRewards, emptyLike, type Numbers, type ReturnInputs, shapeOf } from "./inputs.ts"
import { sweep } from "./sweep.ts"

export interface GaeInputs<A extends Numbers> extends ReturnInputs<A> {
  readonly lambda: number
  /** If set, this array gets the value targets, advantage + value. */
  readonly targets?: A
}

/**
 * Computes advantages by generalised advantage estimation (Schulman et al. 2015, arXiv:1506.02438):
 *
 *     δ_t = r_t + γ v'_t − V_t        A_t = δ_t + γ λ (1 − done_t) A_{t+1}        A_T = 0
 *
 * V_t is the value of observation t. v'_t is the value of the observation after step t: 0 if the episode terminated
 * there, the value of its final observation if it was truncated there, else V_{t+1}. done_t is 1 if the episode ended
 * at step t in either way, else 0. T is the number of steps.
 *
 * @example
 * ```ts
 * Returns.gae({
 *   rewards: Float64Array.of(1, 1),
 *   values: Float64Array.of(0, 0),
 *   lastValues: Float64Array.of(10),
 *   terminated: Uint8Array.of(0, 0),
 *   gamma: 0.5,
 *   lambda: 1,
 * }) // [4, 6]
 * ```
 */
export const gae = <A extends Numbers>(inputs: GaeInputs<A>): A => {
  shapeOf(inputs, { targets: inputs.targets })
  checkRates({ lambda: inputs.lambda })
  const rewards = countedRewards(inputs)
  const advantages = inputs.out ?? emptyLike(rewards)
  sweep({ ...inputs, rewards, decay: inputs.gamma * inputs.lambda, advantages })
  return advantages
}
