/**
 * Computes confidence intervals of means, for the reports of evaluations. Pass one value for each task, not for each
 * episode: episodes of the same task are similar, and would make the interval too narrow.
 *
 * @example
 * ```ts
 * interval([1, 1, 0, 1]) // { mean: 0.75, low: 0.30…, high: 0.95… }: Wilson's interval, since all values are 0 or 1
 * interval([0.2, 0.9, 0.4]) // a bootstrap interval
 * ```
 */
import { Schema } from "effect"
import { bootstrap, meanOf, type Resampling } from "./resampling.ts"

export const Interval = Schema.Struct({ mean: Schema.Finite, low: Schema.Finite, high: Schema.Finite })
export type Interval = typeof Interval.Type

/** Computes the chance that a standard normal variable is below x, by Marsaglia's series; accurate for |x| ≤ 7. */
export const normalBelow = (x: number): number => {
  let term = x
  let sum = x
  // The series is x + x³/3 + x⁵/(3·5) + …: each term is the previous one times x² / at, for the odd numbers from 3.
  for (let at = 3; Math.abs(term) > 1e-17 * Math.abs(sum); at += 2) {
    term *= (x * x) / at
    sum += term
  }
  return 0.5 + (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI)
}

/** Returns the x below which a standard normal variable lies with the probability `share`; found by bisection. */
export const normalQuantile = (share: number): number => {
  let [low, high] = [-7, 7]
  // After 60 halvings, the interval is as narrow as the precision of a number.
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2
    if (normalBelow(middle) < share) low = middle
    else high = middle
  }
  return (low + high) / 2
}

/**
 * Computes Wilson's confidence interval (1927) of the share of successful trials. It stays within [0, 1], and has a
 * width above 0 even if all trials are equal.
 */
export const wilson = (successes: number, trials: number, confidence = 0.95): Interval => {
  const z = normalQuantile((1 + confidence) / 2)
  const mean = successes / trials
  const scale = 1 + (z * z) / trials
  const middle = (mean + (z * z) / (2 * trials)) / scale
  const half = (z * Math.sqrt((mean * (1 - mean)) / trials + (z * z) / (4 * trials * trials))) / scale
  return { mean, low: Math.max(0, Math.min(mean, middle - half)), high: Math.min(1, Math.max(mean, middle + half)) }
}

/** From this number of values on, a mean counts as normally distributed, because resampling would take minutes. */
export const manyValues = 5_000

/**
 * Computes the confidence interval of a mean by the bootstrap, or for `manyValues` and more by the normal distribution.
 */
const intervalOfMean = (
  values: ReadonlyArray<number>,
  how: Resampling & { readonly normalFrom?: number },
): Interval => {
  const mean = meanOf(values)
  if (values.length >= (how.normalFrom ?? manyValues)) {
    const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1)
    const half = normalQuantile((1 + (how.confidence ?? 0.95)) / 2) * Math.sqrt(variance / values.length)
    return { mean, low: mean - half, high: mean + half }
  }
  const [low, high] = bootstrap(values, meanOf, how)
  // Extend the interval to include the mean: a rare large value is part of the mean, but of few resamples.
  return { mean, low: Math.min(low, mean), high: Math.max(high, mean) }
}

const isBinary = (value: number): boolean => value === 0 || value === 1

/**
 * Computes the confidence interval of a mean: Wilson's if all values are 0 or 1, otherwise that of `intervalOfMean`, which counts a
 * mean of `normalFrom` values and more as normally distributed. Throws a RangeError if there are no values.
 */
export const interval = (
  values: ReadonlyArray<number>,
  how: Resampling & { readonly normalFrom?: number } = {},
): Interval => {
  if (values.length === 0) throw new RangeError("interval: there are no values")
  if (!values.every(isBinary)) return intervalOfMean(values, how)
  return wilson(meanOf(values) * values.length, values.length, how.confidence)
}
