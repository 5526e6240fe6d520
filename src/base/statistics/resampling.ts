/**
 * Computes means, deviations and quantiles of numbers, confidence intervals by resampling, and thinned-out lists.
 * The page of `effect ui` loads this file in the browser, so it may import only files without Node or Effect.
 *
 * @example
 * ```ts
 * interquartileMean([0, 480, 490, 500]) // 485
 * bootstrap([480, 490, 500, 210, 495], interquartileMean) // [300, 496.7…]
 * ```
 */
import { stream } from "../rng/Rng.ts"

/** Computes the mean, adding the values in their order; NaN if there are none. */
export const meanOf = (values: ArrayLike<number>): number => {
  let sum = 0
  for (let at = 0; at < values.length; at++) sum += values[at]
  return sum / values.length
}

export const meanOrNull = (values: ArrayLike<number>): number | null => (values.length === 0 ? null : meanOf(values))

/** Computes the standard deviation of a population, which divides by n. */
export const deviationOf = (values: ReadonlyArray<number>): number => {
  const mean = meanOf(values)
  return Math.sqrt(meanOf(values.map((value) => (value - mean) ** 2)))
}

/** Computes the mean without the lowest and the highest quarter: of n values, ⌊n / 4⌋ are left out at each end. */
export const interquartileMean = (values: ReadonlyArray<number>): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const cut = Math.floor(sorted.length / 4)
  return meanOf(sorted.slice(cut, sorted.length - cut))
}

/** Computes a quantile of sorted values, with linear interpolation; `share` is from 0 to 1. */
export const quantile = (sorted: ArrayLike<number>, share: number): number => {
  const place = share * (sorted.length - 1)
  const below = Math.floor(place)
  const above = Math.min(below + 1, sorted.length - 1)
  return sorted[below] + (place - below) * (sorted[above] - sorted[below])
}

/** Says how a confidence interval is computed; by default from 2000 resamples, at the confidence level 0.95, with seed 0. */
export interface Resampling {
  readonly resamples?: number | undefined
  readonly confidence?: number | undefined
  /** The seed of the resampling. */
  readonly seed?: number | undefined
}

/**
 * Computes a confidence interval of a statistic by the bootstrap: draws `resamples` samples from the values with
 * replacement, and returns the percentiles of the statistic over them. The same seed gives the same interval.
 */
export const bootstrap = (
  values: ReadonlyArray<number>,
  statistic: (values: ReadonlyArray<number>) => number,
  how: Resampling = {},
): readonly [number, number] => stratifiedBootstrap([values], ([sampled]) => statistic(sampled), how)

/**
 * Computes a confidence interval of a statistic of several groups of values, such as the scores of an algorithm's trainings in
 * each of several envs, by the stratified bootstrap (Agarwal et al. 2021): as `bootstrap`, but each sample draws from every group
 * as many values as it has, so that no group weighs more than another by chance.
 *
 * @example
 * ```ts
 * const scores = [[0.8, 0.9, 0.7], [0.2, 0.4, 0.3]] // of three trainings in each of two envs
 * stratifiedBootstrap(scores, (sampled) => interquartileMean(sampled.flat())) // [0.475, 0.625]
 * ```
 */
export const stratifiedBootstrap = (
  strata: ReadonlyArray<ReadonlyArray<number>>,
  statistic: (strata: ReadonlyArray<ReadonlyArray<number>>) => number,
  { resamples = 2000, confidence = 0.95, seed = 0 }: Resampling = {},
): readonly [number, number] => {
  const random = stream(seed, "bootstrap", strata.flat().length)
  const statistics = Float64Array.from({ length: resamples }, () =>
    statistic(strata.map((values) => values.map(() => values[random.integer(values.length)]))),
  ).sort()
  return [quantile(statistics, (1 - confidence) / 2), quantile(statistics, (1 + confidence) / 2)]
}

/** Returns at most `most` of the items (2 or more), evenly spaced, including the first and the last. */
export const thinned = <A>(items: ReadonlyArray<A>, most: number): ReadonlyArray<A> =>
  items.length <= most
    ? items
    : Array.from({ length: most }, (_, index) => items[Math.round((index * (items.length - 1)) / (most - 1))])
