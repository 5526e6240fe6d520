/** Computes n-step returns, which are value targets. `Returns.ts` exports the function for users of the library. */
import { countedRewards, emptyLike, isDone, nextValue, type Numbers, type ReturnInputs, shapeOf } from "./inputs.ts"
import { lambdaReturn } from "./lambdaReturn.ts"

export interface NStepInputs<A extends Numbers> extends ReturnInputs<A> {
  /** The number of rewards that are summed before the value is added; by default, all to the end of the rollout. */
  readonly horizon?: number
  /** With `rlib`, the return of the last time step is computed as in the library rlib: see `LambdaInputs`. */
  readonly tail?: "rlib"
}

/**
 * Computes the n-step return: the sum of discounted rewards to the end of the episode, the horizon or the rollout,
 * whichever comes first, plus the discounted value of the observation there.
 *
 *     G_t = r_t + γ r_{t+1} + … + γ^n v'
 *
 * v' is the value of the observation after the last reward; it is 0 if the episode terminated there.
 *
 * @example
 * ```ts
 * Returns.nStep({
 *   rewards: Float64Array.of(1, 1, 1),
 *   values: Float64Array.of(0, 0, 0),
 *   lastValues: Float64Array.of(5),
 *   terminated: Uint8Array.of(0, 1, 0),
 *   gamma: 0.99,
 * }) // [1.99, 1, 5.95]
 * ```
 */
export const nStep = <A extends Numbers>(inputs: NStepInputs<A>): A => {
  const { horizon, values, lastValues, gamma, tail } = inputs
  if (horizon === undefined) return lambdaReturn({ ...inputs, lambda: 1 })
  if (!Number.isInteger(horizon) || horizon < 1) {
    throw new RangeError(`horizon: expected an integer of at least 1, found ${horizon}`)
  }
  const { steps, envs } = shapeOf(inputs)
  const rewards = countedRewards(inputs)
  const out = inputs.out ?? emptyLike(rewards)
  for (let t = 0; t < steps; t++) {
    for (let n = 0; n < envs; n++) {
      let total = 0
      let discount = 1
      for (let k = t; k < Math.min(t + horizon, steps); k++) {
        const row = k * envs + n
        const isLast = k === steps - 1
        if (isLast && tail === "rlib") {
          total += discount * (isDone(inputs, row) ? 0 : lastValues[n])
          break
        }
        total += discount * rewards[row]
        discount *= gamma
        const bootstraps = isDone(inputs, row) || isLast || k === t + horizon - 1
        if (!bootstraps) continue
        total += discount * nextValue(inputs, row, isLast ? lastValues : values, isLast ? n : row + envs)
        break
      }
      out[t * envs + n] = total
    }
  }
  return out
}
