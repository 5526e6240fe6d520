/** Computes advantages by generalised advantage estimation (GAE), from the last time step to the first. The learners use it. */
import {
  checkRates,
  countedRewards,
  emptyLike,
  type Numbers,
  type ReturnInputs,
  shapeOf,
  type SweepColumns,
} from "./inputs.ts"
import { simd, vector32 } from "./simd.ts"

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

/**
 * Writes the advantages and, if `targets` is set, the value targets; in float32 if the arrays are, else in float64:
 *
 * A_t = (r_t − V_t) + (0 where terminated, γ V(final) where truncated, else γ V_{t+1} + γλ A_{t+1})
 *
 * V(final) is the value of an episode's final observation. The flags `terminated` and `truncated` select one of the three
 * cases instead of multiplying by 0, so that a NaN after the end of an episode has no effect.
 */
const sweep = (columns: SweepColumns<Numbers>): void => (isFloat32(columns) ? sweep32(columns) : sweep64(columns))

const isFloat32 = (columns: SweepColumns<Numbers>): columns is SweepColumns<Float32Array> =>
  columns.rewards instanceof Float32Array

const sweep64 = (columns: SweepColumns<Numbers>): void => {
  const { rewards, values, lastValues, terminated, truncated, truncatedValues } = columns
  const { gamma, decay, advantages, targets } = columns
  const envs = lastValues.length
  const lastRow = rewards.length - envs
  for (let at = rewards.length - 1; at >= 0; at--) {
    let future = 0
    if (terminated[at] === 0) {
      if (truncated !== undefined && truncated[at] !== 0) {
        if (truncatedValues !== undefined) future = gamma * truncatedValues[at]
      } else if (at >= lastRow) future = gamma * lastValues[at - lastRow]
      else future = gamma * values[at + envs] + decay * advantages[at + envs]
    }
    advantages[at] = rewards[at] - values[at] + future
    if (targets !== undefined) targets[at] = advantages[at] + values[at]
  }
}

/** Computes in float32 without the SIMD module. It rounds each operation, so that both ways give the same bits. */
export const scalar32 = (columns: SweepColumns<Float32Array>): void => {
  const { rewards, values, lastValues, terminated, truncated, truncatedValues, advantages, targets } = columns
  const { fround } = Math
  const gamma = fround(columns.gamma)
  const decay = fround(columns.decay)
  const envs = lastValues.length
  const lastRow = rewards.length - envs
  for (let at = rewards.length - 1; at >= 0; at--) {
    let future = 0
    if (terminated[at] === 0) {
      if (truncated !== undefined && truncated[at] !== 0) {
        if (truncatedValues !== undefined) future = fround(gamma * truncatedValues[at])
        // Adding 0 turns −0 into 0, as in the SIMD module, which adds γλ · 0 here.
      } else if (at >= lastRow) future = fround(gamma * lastValues[at - lastRow]) + 0
      else future = fround(fround(gamma * values[at + envs]) + fround(decay * advantages[at + envs]))
    }
    advantages[at] = fround(rewards[at] - values[at]) + future
    if (targets !== undefined) targets[at] = advantages[at] + values[at]
  }
}

/** Computes in float32, by the SIMD module if the engine can run it and there are at least four envs. */
export const sweep32 = (columns: SweepColumns<Float32Array>): void => {
  if (simd === undefined || columns.lastValues.length < 4) scalar32(columns)
  else vector32(simd, columns)
}
