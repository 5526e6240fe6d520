/** Defines the inputs that all returns share, and checks them. Only the other files of this folder use it. */

/** An array of numbers. All arrays of one call have the same type, and its results have it, too. */
export type Numbers = Float32Array | Float64Array

/**
 * The inputs of every return: flat arrays of one kind, in which step t of env n is row t · N + n if there are N envs.
 *
 * The next value of a row, v', is the value of the observation after its step: 0 where an episode terminated, the value
 * of the final observation where it was truncated, and the value of the env's next row otherwise.
 */
export interface ReturnInputs<A extends Numbers> {
  readonly rewards: A
  /** The value V of each observation. */
  readonly values: A
  /** The value of the observation after the last row of each env; its length is N. */
  readonly lastValues: A
  readonly terminated: Uint8Array
  readonly truncated?: Uint8Array | undefined
  /**
   * The values of the final observations, read where an episode was truncated. If absent, truncations count as
   * terminations.
   */
  readonly truncatedValues?: A | undefined
  readonly gamma: number
  /** Whether to clip rewards to [−1, 1]. */
  readonly clip?: boolean
  /** The array for the result, which must not be `values`; a new array by default. */
  readonly out?: A
}

/** The inputs and outputs of a sweep; all arrays have one element per time step and env. */
export interface SweepColumns<A extends Numbers> extends ReturnInputs<A> {
  /** The product γλ. */
  readonly decay: number
  readonly advantages: A
  /** If set, this array gets the value targets, advantage + value. */
  readonly targets?: A
}

/** Returns the numbers of time steps and of envs. Throws a RangeError that names the array whose length is wrong. */
export const shapeOf = (
  inputs: ReturnInputs<Numbers>,
  others: Readonly<Record<string, ArrayLike<number> | undefined>> = {},
) => {
  const { rewards, values, lastValues, terminated, truncated, truncatedValues, out, gamma } = inputs
  checkRates({ gamma })
  const envs = lastValues.length
  const rows = rewards.length
  if (envs === 0 || rows % envs !== 0) {
    throw new RangeError(`rewards: expected a multiple of ${envs} envs (the length of lastValues), found ${rows} rows`)
  }
  checkRows(rows, { values, terminated, truncated, truncatedValues, out, ...others })
  // A row's result is written before values and results of other rows are read, so the output arrays must not be input
  // arrays.
  for (const [name, array] of Object.entries({ out, targets: others.targets })) {
    if (array === values) throw new RangeError(`${name}: expected another array than values`)
  }
  if (out !== undefined && out === others.targets) throw new RangeError("targets: expected another array than out")
  return { steps: rows / envs, envs }
}

/** Throws a RangeError that names a rate (such as λ) which is not finite: it would make all results NaN. */
export const checkRates = (rates: Readonly<Record<string, number>>): void => {
  for (const [name, rate] of Object.entries(rates))
    if (!Number.isFinite(rate)) throw new RangeError(`${name}: expected a finite number, found ${String(rate)}`)
}

/** Throws a RangeError that names a number which is below 0 or NaN. */
export const checkFromZero = (numbers: Readonly<Record<string, number>>): void => {
  for (const [name, number] of Object.entries(numbers))
    if (!(number >= 0)) throw new RangeError(`${name}: expected a number from 0 on, found ${String(number)}`)
}

/** Throws a RangeError that names the array whose length is not `rows`. */
export const checkRows = (rows: number, arrays: Readonly<Record<string, ArrayLike<number> | undefined>>): void => {
  for (const [name, array] of Object.entries(arrays))
    if (array !== undefined && array.length !== rows)
      throw new RangeError(`${name}: expected ${rows} rows, found ${array.length}`)
}

/** Makes an array of zeros that has the type and the length of `array`. */
export function emptyLike<A extends Numbers>(array: A): A
export function emptyLike(array: Numbers): Numbers {
  return array instanceof Float32Array ? new Float32Array(array.length) : new Float64Array(array.length)
}

/** Returns the rewards to compute with: the array itself, or if `clip` is set a copy that is clipped to [−1, 1]. */
export const countedRewards = <A extends Numbers>({ rewards, clip = false }: ReturnInputs<A>): A => {
  if (!clip) return rewards
  const counted = emptyLike(rewards)
  for (let row = 0; row < counted.length; row++) counted[row] = Math.min(Math.max(rewards[row], -1), 1)
  return counted
}

/**
 * Returns the next value v' of a row. `next[nextRow]` is the value of the env's next row. `gae.ts` has a faster copy
 * of this.
 */
export const nextValue = (inputs: ReturnInputs<Numbers>, row: number, next: Numbers, nextRow: number): number => {
  if (inputs.terminated[row] !== 0) return 0
  if (inputs.truncated !== undefined && inputs.truncated[row] !== 0) return inputs.truncatedValues?.[row] ?? 0
  return next[nextRow]
}

/** Tells whether an episode ended at the row. */
export const isDone = (
  { terminated, truncated }: Pick<ReturnInputs<Numbers>, "terminated" | "truncated">,
  row: number,
): boolean => terminated[row] !== 0 || (truncated !== undefined && truncated[row] !== 0)
