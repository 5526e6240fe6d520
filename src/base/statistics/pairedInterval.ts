/**
 * Computes confidence intervals of the mean difference of paired values. They have a width above 0 even if all differences are
 * equal, and are wide enough for a few pairs: resampling a few differences, or equal ones, would promise more than they show.
 * `paired.ts` uses them.
 *
 * @example
 * ```ts
 * tango({ pairs: 21, rises: 1, falls: 7 }) // [-0.517, -0.026]
 * meanDifference([0, 0, 0, 0, 0, 0], { scale: 1 }) // [-0.447, 0.447]
 * ```
 */
import { highest } from "./extremes.ts"
import { manyValues, normalQuantile } from "./intervals.ts"
import { meanOf } from "./resampling.ts"

interface ChangedPairs {
  readonly pairs: number
  /** The number of pairs whose value changed from 0 to 1; `falls` counts those that changed from 1 to 0. */
  readonly rises: number
  readonly falls: number
}

type Limits = readonly [low: number, high: number]

/** Finds where a function that falls from a positive to a negative value is 0, between `low` and `high`. */
const zeroOf = (falling: (x: number) => number, low: number, high: number): number => {
  let [left, right] = [low, high]
  // After 60 halvings, the interval is as narrow as the precision of a number.
  for (let step = 0; step < 60; step++) {
    const middle = (left + right) / 2
    if (falling(middle) > 0) left = middle
    else right = middle
  }
  return (left + right) / 2
}

/**
 * Computes the score statistic of the hypothesis that the difference of two paired shares is `delta` (Tango 1998). The chance of
 * a fall is estimated under this hypothesis.
 */
const scoreStatistic = ({ pairs, rises, falls }: ChangedPairs, delta: number): number => {
  const a = 2 * pairs
  const b = (2 * pairs - rises + falls) * delta - rises - falls
  const c = -falls * delta * (1 - delta)
  const fall = (Math.sqrt(Math.max(0, b * b - 4 * a * c)) - b) / (2 * a)
  const variance = pairs * (2 * fall + delta * (1 - delta))
  const distance = rises - falls - pairs * delta
  return variance > 0 ? distance / Math.sqrt(variance) : distance * Infinity
}

/** Computes Tango's score interval (1998) of the difference of two paired shares, which stays within −1 and 1. */
export const tango = (changed: ChangedPairs, confidence = 0.95): Limits => {
  const z = normalQuantile((1 + confidence) / 2)
  const difference = (changed.rises - changed.falls) / changed.pairs
  const low = difference <= -1 ? -1 : zeroOf((delta) => scoreStatistic(changed, delta) - z, -1, difference)
  const high = difference >= 1 ? 1 : zeroOf((delta) => scoreStatistic(changed, delta) + z, difference, 1)
  return [low, high]
}

/** Computes the chance that a variable with Student's t distribution is below `t`, by its finite series. */
const studentBelow = (t: number, degrees: number): number => {
  const sine = t / Math.sqrt(degrees + t * t)
  const squaredCosine = degrees / (degrees + t * t)
  const isOdd = degrees % 2 === 1
  let term = isOdd ? Math.sqrt(squaredCosine) : 1
  let sum = degrees === 1 ? 0 : term
  for (let at = isOdd ? 3 : 2; at < degrees; at += 2) {
    term *= ((at - 1) / at) * squaredCosine
    sum += term
  }
  const inside = isOdd ? (2 / Math.PI) * (Math.asin(sine) + sine * sum) : sine * sum
  return (1 + inside) / 2
}

/** Returns the t below which a variable with Student's t distribution lies with the probability `share`, from 0.5 on. */
const studentQuantile = (share: number, degrees: number): number =>
  degrees >= manyValues ? normalQuantile(share) : zeroOf((t) => share - studentBelow(t, degrees), 0, 10_000)

/** Computes Student's interval of the mean of two values or more. */
const student = (values: ReadonlyArray<number>, confidence: number): Limits => {
  const mean = meanOf(values)
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1)
  const half = studentQuantile((1 + confidence) / 2, values.length - 1) * Math.sqrt(variance / values.length)
  return [mean - half, mean + half]
}

/** Differences this close to each other, as a share of the largest number, count as equal: rounding may set them apart. */
const rounding = 1e-9

/** Returns the value that more than half of the numbers have, except for rounding; undefined if there is none. */
const commonValue = (numbers: ReadonlyArray<number>, tolerance: number): number | undefined => {
  const middle = Float64Array.from(numbers).sort()[numbers.length >> 1]
  const equal = numbers.filter((value) => Math.abs(value - middle) <= tolerance)
  return 2 * equal.length > numbers.length ? middle : undefined
}

interface DifferenceOptions {
  /** How far a pair may differ if no pair of these does. */
  readonly scale: number
  readonly confidence?: number | undefined
}

/**
 * Computes Student's interval of a mean difference.
 *
 * If most differences are equal, few others decide the variance, and it may be far too small, or 0 if all are equal. Then two
 * more differences are added, as far above and below the common one as the farthest of the others: if none differs, as far as 0,
 * or, if all are 0, by `scale`. For differences of −1, 0 and 1 that are mostly 0, these are the rise and the fall of Bonett and
 * Price (2012). The result is the wider interval.
 *
 * For differences that are normal, rounded or mostly equal, it contains the mean nearly as often as `confidence` says; for
 * strongly skewed ones less often, since a few pairs show no rare large difference.
 */
export const meanDifference = (
  differences: ReadonlyArray<number>,
  { scale, confidence = 0.95 }: DifferenceOptions,
): Limits => {
  const tolerance = rounding * Math.max(scale, highest(differences.map(Math.abs)))
  const common = commonValue(differences, tolerance)
  if (common === undefined) return student(differences, confidence)
  const farthest = highest(differences.map((value) => Math.abs(value - common)))
  const areEqual = farthest <= tolerance
  // A common difference that only rounding sets apart from 0 is 0.
  const fromZero = Math.abs(common) > tolerance ? Math.abs(common) : scale
  const size = areEqual ? fromZero : farthest
  const [low, high] = student([...differences, common + size, common - size], confidence)
  if (areEqual) return [low, high]
  const [ownLow, ownHigh] = student(differences, confidence)
  return [Math.min(low, ownLow), Math.max(high, ownHigh)]
}
