/**
 * How far a mean can be trusted. What is drawn again, or counted, is tasks: episodes of the same task are alike, and
 * would make an interval too narrow.
 *
 * @example
 * ```ts
 * interval([1, 1, 0, 1]) // { mean: 0.75, low: 0.30…, high: 0.95… }: Wilson's, as these are shares
 * interval([0.2, 0.9, 0.4]) // by the bootstrap
 * ```
 */
import { Schema } from "effect"
import { bootstrap, meanOf, type Resampling } from "../statistics/resampling.ts"

export const Interval = Schema.Struct({ mean: Schema.Finite, low: Schema.Finite, high: Schema.Finite })
export type Interval = typeof Interval.Type

/** The share of standard normal values below one: Marsaglia's series, to the last digits within ±7. */
export const normalBelow = (x: number): number => {
  let term = x
  let sum = x
  for (let at = 3; Math.abs(term) > 1e-17 * Math.abs(sum); at += 2) {
    term *= (x * x) / at
    sum += term
  }
  return 0.5 + (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI)
}

/** The value that this share of standard normal ones is below; by halves, as it is asked for once. */
export const normalQuantile = (share: number): number => {
  let [low, high] = [-7, 7]
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2
    if (normalBelow(middle) < share) low = middle
    else high = middle
  }
  return (low + high) / 2
}

/** Wilson's interval of a share (1927): it never leaves [0, 1], and has a width where all were the same, too. */
export const wilson = (successes: number, trials: number, confidence = 0.95): Interval => {
  const z = normalQuantile((1 + confidence) / 2)
  const mean = successes / trials
  const scale = 1 + (z * z) / trials
  const middle = (mean + (z * z) / (2 * trials)) / scale
  const half = (z * Math.sqrt((mean * (1 - mean)) / trials + (z * z) / (4 * trials * trials))) / scale
  return { mean, low: Math.max(0, Math.min(mean, middle - half)), high: Math.min(1, Math.max(mean, middle + half)) }
}

/** From so many values on a mean is as good as normal, and drawing them again thousands of times takes minutes. */
export const manyValues = 5_000

/**
 * Of a mean, whatever the values are: by drawing them again, or by their deviation where there are many. It always holds
 * the mean.
 */
export const intervalOfMean = (values: ReadonlyArray<number>, how: Resampling = {}): Interval => {
  const mean = meanOf(values)
  if (values.length >= manyValues) {
    const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1)
    const half = normalQuantile((1 + (how.confidence ?? 0.95)) / 2) * Math.sqrt(variance / values.length)
    return { mean, low: mean - half, high: mean + half }
  }
  const [low, high] = bootstrap(values, meanOf, how)
  // A value that is rare enough may be in hardly any draw, though the mean has its part of it.
  return { mean, low: Math.min(low, mean), high: Math.max(high, mean) }
}

const isShare = (value: number): boolean => value === 0 || value === 1

/**
 * Of the mean of one value a task: Wilson's where all values are 0 or 1, else as of any mean. Throws a RangeError where
 * there is nothing.
 */
export const interval = (values: ReadonlyArray<number>, how: Resampling = {}): Interval => {
  if (values.length === 0) throw new RangeError("interval: there are no values")
  if (!values.every(isShare)) return intervalOfMean(values, how)
  return wilson(meanOf(values) * values.length, values.length, how.confidence)
}
