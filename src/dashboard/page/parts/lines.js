/** Makes the lines of charts from columns of numbers, and smooths them. */
import { meanOf } from "../../../statistics/resampling.ts"
import { valueAt } from "../../curves/bands.ts"

/** Keeps the points that have a value on the x axis, and smooths the columns. */
export const lineOf = (x, columns, smoothing) => {
  const known = x.flatMap((value, index) => (value === null ? [] : [index]))
  const line = { x: known.map((index) => x[index]) }
  for (const [name, column] of Object.entries(columns)) {
    line[name] = smooth(known.map((index) => column[index]), smoothing) // prettier-ignore
  }
  return line
}

/**
 * Smooths a column by an exponential moving mean: `weight` is the share of the past in each value. The first values
 * have a shorter past, and are corrected for it, so that they aren't drawn towards zero.
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

/** Returns the mean of lines at the places of the longest; a line counts between its ends, by linear interpolation. */
export const meanLine = (lines) => {
  const { x } = lines.reduce((most, line) => (line.x.length > most.x.length ? line : most))
  return { x, y: x.map((place) => meanOf(lines.flatMap((line) => valueAt(line.x, line.y, place) ?? []))) }
}
