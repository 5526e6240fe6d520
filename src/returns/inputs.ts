/**
 * What every return is computed from: flat, time-major arrays (index t · N + n) of one kind of number.
 *
 * `v'`, the value of what comes next, is 0 where an episode terminated, the value of the final observation where it was
 * truncated, and the next row's value otherwise.
 */
export type Numbers = Float32Array | Float64Array

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
  /** Where the result goes; a new array when left out. */
  readonly out?: A
}

/** Throws a RangeError that names the array whose length is off. */
export const checkedShape = <A extends Numbers>(inputs: ReturnInputs<A>): { readonly steps: number; readonly envs: number } => {
  const envs = inputs.lastValues.length
  const rows = inputs.rewards.length
  if (envs === 0 || rows % envs !== 0) throw new RangeError(`rewards: ${rows} rows are no multiple of ${envs} envs (lastValues)`)
  const { values, terminated, truncated, truncatedValues, out } = inputs
  for (const [name, array] of Object.entries({ values, terminated, truncated, truncatedValues, out })) {
    if (array !== undefined && array.length !== rows) throw new RangeError(`${name}: expected ${rows} rows, found ${array.length}`)
  }
  return { steps: rows / envs, envs }
}

/** A new array of the same kind and length. */
export const like = <A extends Numbers>(array: A): A => {
  const copy = array.slice()
  if (copy.constructor !== array.constructor) throw new TypeError("a typed array makes its own kind")
  return copy as A
}

export const clipped = (reward: number): number => (reward > 1 ? 1 : reward < -1 ? -1 : reward)
