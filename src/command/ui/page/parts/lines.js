/** Makes the lines of charts from columns of numbers, and smooths them. */
import { meanOf } from "../../../../base/statistics/resampling.ts"
import { valueAt } from "../../../../base/statistics/interpolation.ts"

/** Makes a line `{ x, ...columns }` from the points whose x value is not null, with smoothed columns. */
export const lineOf = (x, columns, smoothing) => {
  const indices = x.flatMap((value, index) => (value === null ? [] : [index]))
  const line = { x: indices.map((index) => x[index]) }
  for (const [name, column] of Object.entries(columns)) {
    line[name] = smooth(indices.map((index) => column[index]), smoothing) // prettier-ignore
  }
  return line
}

/**
 * Smooths a column with an exponential moving average. `weight`, below 1, is the share of the earlier values in each value.
 * The sum is divided by the sum of weights, because otherwise the first values would be too close to zero.
 */
export const smooth = (values, weight) => {
  if (weight === 0) return values
  let sum = 0
  let weights = 0
  return values.map((value) => {
    sum = sum * weight + value * (1 - weight)
    weights = weights * weight + (1 - weight)
    return sum / weights
  })
}

/**
 * Returns the mean of lines at the x values of the line with the most points. Lines are interpolated, but not beyond their
 * ends.
 */
export const meanLine = (lines) => {
  const { x } = lines.reduce((most, line) => (line.x.length > most.x.length ? line : most))
  return { x, y: x.map((place) => meanOf(lines.flatMap((line) => valueAt(line.x, line.y, place) ?? []))) }
}
