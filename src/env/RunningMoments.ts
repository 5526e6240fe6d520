/**
 * Computes the running mean and variance of each column of the rows that it receives, in one pass (Chan, Golub and
 * LeVeque 1979). `update` changes the numbers in the arrays but never replaces the arrays, so a reference to them stays
 * valid. `Normalise` and the exploration bonus keep their statistics in it.
 */
export interface RunningMoments {
  readonly size: number
  readonly mean: Float64Array
  /** The population variance of each column, which divides by the count. */
  readonly variance: Float64Array
  /** The number of rows so far, in an array of one element. It starts slightly above 0, as in Gymnasium. */
  readonly count: Float64Array
  /** Adds rows of `size` numbers; with a mask, only the rows whose entry is not 0. */
  readonly update: (rows: Float32Array | Float64Array, mask?: Uint8Array) => void
  readonly copyFrom: (other: RunningMoments) => void
}

/**
 * Makes statistics of `size` columns. They begin with mean 0 and variance 1, which together weigh as much as
 * `initialCount` rows.
 *
 * @example
 * ```ts
 * const moments = make(1)
 * moments.update(Float32Array.of(1, 3))
 * moments.mean // [1.9999], moments.variance // [1.0002]
 * ```
 */
export const make = (size: number, initialCount = 1e-4): RunningMoments => {
  const mean = new Float64Array(size)
  const variance = new Float64Array(size).fill(1)
  const count = Float64Array.of(initialCount)

  const update = (rows: Float32Array | Float64Array, mask?: Uint8Array): void => {
    const total = rows.length / size
    let added = total
    if (mask !== undefined) {
      added = 0
      for (let row = 0; row < total; row++) if (mask[row] !== 0) added++
    }
    if (added === 0) return
    const before = count[0]
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
      const delta = batchMean - mean[column]
      mean[column] += (delta * added) / after
      variance[column] = (variance[column] * before + squares + (delta * delta * before * added) / after) / after
    }
    count[0] = after
  }

  const copyFrom = (other: RunningMoments): void => {
    mean.set(other.mean)
    variance.set(other.variance)
    count.set(other.count)
  }

  return { size, mean, variance, count, update, copyFrom }
}
