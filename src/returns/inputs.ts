/** Float32Array or Float64Array: results are of the rewards' kind. */
export type Numbers = Float32Array | Float64Array

/**
 * What every return is computed from: flat, time-major arrays (index t · N + n) of one kind of number.
 *
 * The value of what comes next, `v'`, is 0 where an episode terminated, the value of the final observation where it was
 * truncated, and the next row's value otherwise.
 */
export interface ReturnInputs<A extends Numbers> {
  readonly rewards: A
  /** V of the observation acted on. */
  readonly values: A
  /** V after the last row, one an env; its length is N. */
  readonly lastValues: A
  readonly terminated: Uint8Array
  readonly truncated?: Uint8Array
  /** V of the final observation where truncated; without it a truncation counts as a termination. */
  readonly truncatedValues?: A
  readonly gamma: number
  /** Clip rewards to [−1, 1]. */
  readonly clip?: boolean
  /** Where the result goes, which can't be `values`; a new array when left out. */
  readonly out?: A
}

export interface Shape {
  readonly steps: number
  readonly envs: number
}

/** The rollout's shape. Throws a RangeError that names the array whose length is off. */
export const shapeOf = (
  inputs: ReturnInputs<Numbers>,
  others: Readonly<Record<string, ArrayLike<number> | undefined>> = {},
): Shape => {
  const { rewards, values, lastValues, terminated, truncated, truncatedValues, out } = inputs
  const envs = lastValues.length
  const rows = rewards.length
  if (envs === 0 || rows % envs !== 0) {
    throw new RangeError(`rewards: ${rows} rows are no multiple of ${envs} envs (lastValues)`)
  }
  for (const [name, array] of Object.entries({ values, terminated, truncated, truncatedValues, out, ...others })) {
    if (array !== undefined && array.length !== rows) {
      throw new RangeError(`${name}: expected ${rows} rows, found ${array.length}`)
    }
  }
  // A row's value is read again after its result is written, and so is the result.
  for (const [name, array] of Object.entries({ out, targets: others.targets })) {
    if (array === values) throw new RangeError(`${name}: can't be the array of values`)
  }
  if (out !== undefined && out === others.targets) throw new RangeError("targets: can't be the array of out")
  return { steps: rows / envs, envs }
}

export const emptyLike = (array: Numbers): Numbers =>
  array instanceof Float32Array ? new Float32Array(array.length) : new Float64Array(array.length)

export const isFloat32 = <A extends { readonly rewards: Float32Array }, B extends { readonly rewards: Float64Array }>(
  inputs: A | B,
): inputs is A => inputs.rewards instanceof Float32Array

/** The rewards as they count: a clipped copy where that is asked for. */
export function countedRewards(inputs: ReturnInputs<Float32Array>): Float32Array
export function countedRewards(inputs: ReturnInputs<Float64Array>): Float64Array
export function countedRewards(inputs: ReturnInputs<Numbers>): Numbers
export function countedRewards({ rewards, clip = false }: ReturnInputs<Numbers>): Numbers {
  if (!clip) return rewards
  const counted = rewards.slice()
  for (let row = 0; row < counted.length; row++) counted[row] = Math.min(Math.max(counted[row], -1), 1)
  return counted
}

/**
 * v' of one row, its rewards' index `row`, the next row's values at `next[nextRow]`. For the paths that are not hot.
 */
export const nextValue = (inputs: ReturnInputs<Numbers>, row: number, next: Numbers, nextRow: number): number => {
  if (inputs.terminated[row] !== 0) return 0
  if (inputs.truncated !== undefined && inputs.truncated[row] !== 0) return inputs.truncatedValues?.[row] ?? 0
  return next[nextRow]
}

export const isDone = (inputs: ReturnInputs<Numbers>, row: number): boolean =>
  inputs.terminated[row] !== 0 || (inputs.truncated !== undefined && inputs.truncated[row] !== 0)
