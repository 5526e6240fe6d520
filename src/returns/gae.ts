import { countedRewards, isFloat32, type Numbers, type ReturnInputs, shapeOf } from "./inputs.ts"
import { type Columns, sweep32, sweep64 } from "./sweep.ts"

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
export function gae(inputs: GaeInputs<Float32Array>): Float32Array
export function gae(inputs: GaeInputs<Float64Array>): Float64Array
export function gae(inputs: GaeInputs<Float32Array> | GaeInputs<Float64Array>): Numbers {
  shapeOf(inputs, { targets: inputs.targets })
  return isFloat32(inputs) ? gae32(inputs) : gae64(inputs)
}

const gae32 = (inputs: GaeInputs<Float32Array>): Float32Array => {
  const advantages = inputs.out ?? new Float32Array(inputs.rewards.length)
  sweep32(columnsOf(inputs, countedRewards(inputs), advantages))
  return advantages
}

const gae64 = (inputs: GaeInputs<Float64Array>): Float64Array => {
  const advantages = inputs.out ?? new Float64Array(inputs.rewards.length)
  sweep64(columnsOf(inputs, countedRewards(inputs), advantages))
  return advantages
}

const columnsOf = <A extends Numbers>(inputs: GaeInputs<A>, rewards: A, advantages: A): Columns<A> => ({
  rewards,
  values: inputs.values,
  lastValues: inputs.lastValues,
  terminated: inputs.terminated,
  truncated: inputs.truncated,
  truncatedValues: inputs.truncatedValues,
  gamma: inputs.gamma,
  decay: inputs.gamma * inputs.lambda,
  advantages,
  targets: inputs.targets,
})
