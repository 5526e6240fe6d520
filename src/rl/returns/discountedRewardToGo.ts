/** Computes sums of discounted rewards, without a critic. `Returns.ts` exports it for users of the library. */
import { checkRates, checkRows, emptyLike, isDone, type Numbers } from "./inputs.ts"

export interface RewardToGoInputs<A extends Numbers> {
  readonly rewards: A
  readonly terminated: Uint8Array
  readonly truncated?: Uint8Array
  readonly numEnvs: number
  readonly gamma: number
  /** The array for the result; a new array by default. */
  readonly out?: A
}

/**
 * Sums up the discounted rewards Σ γ^k r_{t+k} from each step t to the end of its episode or of the rollout. Rewards
 * after the end of the rollout count as 0. REINFORCE weights its gradient with this sum (Williams 1992). The index of
 * step t of env n is t · numEnvs + n.
 *
 * @example
 * ```ts
 * Returns.discountedRewardToGo({
 *   rewards: Float64Array.of(1, 1, 1),
 *   terminated: Uint8Array.of(0, 1, 0),
 *   numEnvs: 1,
 *   gamma: 0.5,
 * }) // [1.5, 1, 1]
 * ```
 */
export const discountedRewardToGo = <A extends Numbers>(inputs: RewardToGoInputs<A>): A => {
  const { rewards, terminated, truncated, numEnvs, gamma } = inputs
  const rows = rewards.length
  const out = inputs.out ?? emptyLike(rewards)
  if (!(Number.isInteger(numEnvs) && numEnvs > 0 && rows % numEnvs === 0)) {
    throw new RangeError(`rewards: expected a multiple of ${numEnvs} envs, found ${rows} rows`)
  }
  checkRates({ gamma })
  checkRows(rows, { terminated, truncated, out })
  for (let row = rows - 1; row >= 0; row--) {
    out[row] = isDone(inputs, row) || row + numEnvs >= rows ? rewards[row] : rewards[row] + gamma * out[row + numEnvs]
  }
  return out
}
