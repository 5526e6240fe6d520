import { countedRewards, emptyLike, type Numbers, type ReturnInputs, shapeOf } from "./inputs.ts"

export interface GaeInputs<A extends Numbers> extends ReturnInputs<A> {
  readonly lambda: number
  /** Also written: the value targets, advantage + value. */
  readonly targets?: A
}

/**
 * Generalised advantage estimation (Schulman et al. 2015, arXiv:1506.02438):
 *
 *     δ_t = r_t + γ v'_t − V_t        A_t = δ_t + γ λ (1 − done_t) A_{t+1}        A_T = 0
 *
 * @example
 * ```ts
 * gae({
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
export function gae(inputs: GaeInputs<Numbers>): Numbers {
  const { values, lastValues, terminated, truncated, truncatedValues, gamma, lambda, targets } = inputs
  const { steps, envs } = shapeOf(inputs, { targets })
  const rewards = countedRewards(inputs)
  const out = inputs.out ?? emptyLike(rewards)

  for (let t = steps - 1; t >= 0; t--) {
    const row = t * envs
    const isLast = t === steps - 1
    const next = isLast ? lastValues : values
    const nextRow = isLast ? 0 : row + envs
    if (truncated === undefined) {
      advantages(rewards, values, next, terminated, out, row, nextRow, envs, gamma, gamma * lambda, isLast)
    } else {
      const cutValues = truncatedValues ?? zerosLike(rewards)
      truncatedAdvantages(rewards, values, next, terminated, truncated, cutValues, out, row, nextRow, envs, gamma, gamma * lambda, isLast)
    }
    if (targets !== undefined) for (let n = row; n < row + envs; n++) targets[n] = out[n] + values[n]
  }
  return out
}

let zeros: Numbers = new Float32Array(0)

/** Zeros to read from, of a kind and length, kept from one call to the next. */
const zerosLike = (array: Numbers): Numbers => {
  if (zeros.length !== array.length || zeros.constructor !== array.constructor) zeros = emptyLike(array)
  return zeros
}

/** One row of time. Flags are 0 or 1, so arithmetic stands in for branches. */
const advantages = (
  rewards: Numbers,
  values: Numbers,
  next: Numbers,
  terminated: Uint8Array,
  out: Numbers,
  row: number,
  nextRow: number,
  envs: number,
  gamma: number,
  decay: number,
  isLast: boolean,
): void => {
  if (isLast) {
    for (let n = 0; n < envs; n++) {
      out[row + n] = rewards[row + n] + gamma * (1 - terminated[row + n]) * next[nextRow + n] - values[row + n]
    }
    return
  }
  for (let n = 0; n < envs; n++) {
    const goesOn = 1 - terminated[row + n]
    const delta = rewards[row + n] + gamma * goesOn * next[nextRow + n] - values[row + n]
    out[row + n] = delta + decay * goesOn * out[nextRow + n]
  }
}

const truncatedAdvantages = (
  rewards: Numbers,
  values: Numbers,
  next: Numbers,
  terminated: Uint8Array,
  truncated: Uint8Array,
  truncatedValues: Numbers,
  out: Numbers,
  row: number,
  nextRow: number,
  envs: number,
  gamma: number,
  decay: number,
  isLast: boolean,
): void => {
  for (let n = 0; n < envs; n++) {
    const at = row + n
    const ended = terminated[at]
    const cut = truncated[at]
    const after = ended !== 0 ? 0 : cut !== 0 ? truncatedValues[at] : next[nextRow + n]
    const delta = rewards[at] + gamma * after - values[at]
    out[at] = (ended | cut) !== 0 || isLast ? delta : delta + decay * out[nextRow + n]
  }
}
