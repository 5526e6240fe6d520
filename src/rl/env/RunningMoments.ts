import { highest } from "../../base/statistics/extremes.ts"

/**
 * Computes the running mean and variance of each column of the rows that it receives, in one pass (Chan, Golub and
 * LeVeque 1979; with one row at a time it is Welford's algorithm). `update` changes the numbers in the arrays but never replaces the arrays, so a reference to them stays
 * valid. `Normalise` and the exploration bonus keep their statistics in it.
 */
export interface RunningMoments {
  /** The number of columns of a row. */
  readonly size: number
  /**
   * The group number of each row; the list repeats if there are more rows. Rows with the same number share statistics.
   * The arrays hold the columns of group 0, then those of group 1, and so on.
   */
  readonly groups: ReadonlyArray<number>
  readonly mean: Float64Array
  /** The population variance of each column, which divides by the count. */
  readonly variance: Float64Array
  /** The number of rows so far of each group. It starts slightly above 0, as in Gymnasium. */
  readonly count: Float64Array
  /** Adds rows of `size` numbers; with a mask, only the rows whose entry is not 0. */
  readonly update: (rows: Float32Array | Float64Array, mask?: Uint8Array) => void
  readonly copyFrom: (other: RunningMoments) => void
}

/** The groups of a batch whose rows all share one set of statistics. */
const together: ReadonlyArray<number> = [0]

/**
 * Makes statistics of `size` columns. They begin with mean 0 and variance 1, which together weigh as much as
 * `initialCount` rows.
 *
 * @example
 * ```ts
 * const moments = make(1)
 * moments.update(Float32Array.of(1, 3))
 * moments.mean // [1.9999], moments.variance // [1.0002]
 * make(1, 1e-4, [0, 1, 1]).mean.length // 2: the rows 1, 2, 4, 5, 7 … share statistics
 * ```
 */
export const make = (size: number, initialCount = 1e-4, groups: ReadonlyArray<number> = together): RunningMoments => {
  const groupCount = highest(groups) + 1
  const mean = new Float64Array(size * groupCount)
  const variance = new Float64Array(size * groupCount).fill(1)
  const count = new Float64Array(groupCount).fill(initialCount)

  const updateGroup = (group: number, rows: Float32Array | Float64Array, mask: Uint8Array | undefined): void => {
    const total = rows.length / size
    let added = total
    if (mask !== undefined) {
      added = 0
      for (let row = 0; row < total; row++) if (mask[row] !== 0) added++
    }
    if (added === 0) return
    const before = count[group]
    const after = before + added
    for (let column = 0; column < size; column++) {
      let sum = 0
      for (let row = 0; row < total; row++) {
        if (mask === undefined || mask[row] !== 0) sum += rows[row * size + column]
      }
      const batchMean = sum / added
      let squares = 0
      for (let row = 0; row < total; row++) {
        if (mask !== undefined && mask[row] === 0) continue
        const deviation = rows[row * size + column] - batchMean
        squares += deviation * deviation
      }
      const at = group * size + column
      const delta = batchMean - mean[at]
      mean[at] += (delta * added) / after
      variance[at] = (variance[at] * before + squares + (delta * delta * before * added) / after) / after
    }
    count[group] = after
  }

  let own = new Uint8Array(0)
  const update = (rows: Float32Array | Float64Array, mask?: Uint8Array): void => {
    if (groupCount === 1) return updateGroup(0, rows, mask)
    const total = rows.length / size
    if (own.length !== total) own = new Uint8Array(total)
    for (let group = 0; group < groupCount; group++) {
      for (let row = 0; row < total; row++) own[row] = groups[row % groups.length] === group ? (mask?.[row] ?? 1) : 0
      updateGroup(group, rows, own)
    }
  }

  const copyFrom = (other: RunningMoments): void => {
    mean.set(other.mean)
    variance.set(other.variance)
    count.set(other.count)
  }

  return { size, groups, mean, variance, count, update, copyFrom }
}

/** Returns the mean and the variance of the columns of a group, as views of the statistics' arrays. */
export const groupIn = (
  { size, mean, variance }: RunningMoments,
  group: number,
): Pick<RunningMoments, "mean" | "variance"> => ({
  mean: mean.subarray(group * size, (group + 1) * size),
  variance: variance.subarray(group * size, (group + 1) * size),
})
