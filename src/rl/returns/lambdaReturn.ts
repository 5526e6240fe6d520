/** Computes λ-returns, which are value targets. `Returns.ts` exports this, and `nStep.ts` calls it with λ = 1. */
import {
  checkRates,
  countedRewards,
  emptyLike,
  isDone,
  nextValue,
  type Numbers,
  type ReturnInputs,
  shapeOf,
} from "./inputs.ts"

export interface LambdaInputs<A extends Numbers> extends ReturnInputs<A> {
  readonly lambda: number
  /**
   * With `rlib`, the return of the last time step is lastValues · (1 − done), without the step's reward, as in the
   * library rlib. By default, the last step is computed like all others.
   */
  readonly tail?: "rlib"
}

/**
 * Computes the λ-return (Sutton and Barto 2018, 12.2): `G_t = r_t + γ v'_t` where an episode ends, else
 *
 *     G_t = r_t + γ ((1 − λ) v'_t + λ G_{t+1})        G_T = lastValues
 *
 * v'_t is the value of the observation after step t: 0 if the episode terminated there, the value of its final
 * observation if it was truncated there, else V_{t+1}. T is the number of steps.
 *
 * The λ-return minus the values equals `gae`. With λ = 1 it equals `nStep`, and with λ = 0 the one-step TD target.
 *
 * @example
 * ```ts
 * Returns.lambdaReturn({
 *   rewards: Float64Array.of(1, 1),
 *   values: Float64Array.of(0, 4),
 *   lastValues: Float64Array.of(10),
 *   terminated: Uint8Array.of(0, 0),
 *   gamma: 0.5,
 *   lambda: 0.5,
 * }) // [3.5, 6]
 * ```
 */
export const lambdaReturn = <A extends Numbers>(inputs: LambdaInputs<A>): A => {
  const { values, lastValues, gamma, lambda, tail } = inputs
  const { steps, envs } = shapeOf(inputs)
  checkRates({ lambda })
  const rewards = countedRewards(inputs)
  const out = inputs.out ?? emptyLike(rewards)
  for (let t = steps - 1; t >= 0; t--) {
    const isLast = t === steps - 1
    for (let n = 0; n < envs; n++) {
      const row = t * envs + n
      if (isLast && tail === "rlib") {
        out[row] = isDone(inputs, row) ? 0 : lastValues[n]
        continue
      }
      const next = nextValue(inputs, row, isLast ? lastValues : values, isLast ? n : row + envs)
      const after = isLast ? lastValues[n] : out[row + envs]
      out[row] = rewards[row] + gamma * (isDone(inputs, row) ? next : (1 - lambda) * next + lambda * after)
    }
  }
  return out
}
