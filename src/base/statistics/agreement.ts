/**
 * Measures how far two raters agree on the same items: the share of items on which they agree, and Cohen's kappa (1960), which
 * leaves out the agreement that is expected by chance. Evaluations compare a judge with people's labels by it.
 *
 * @example
 * ```ts
 * cohensKappa([["yes", "yes"], ["yes", "no"], ["no", "no"], ["no", "no"]]) // 0.5: they agree on 3 of 4, by chance on 2
 * ```
 */
import { Schema } from "effect"
import { stream } from "../rng/Rng.ts"
import { manyValues, normalQuantile } from "./intervals.ts"
import { quantile, type Resampling } from "./resampling.ts"

/** The ratings of an item by the first and by the second rater. */
export type RatingPair = readonly [string, string]

/** The agreement of two raters. */
export const Agreement = Schema.Struct({
  /** The number of items that have labels and ratings; the ratings of an item are resampled together. */
  items: Schema.Int,
  /** The number of pairs of ratings. */
  pairs: Schema.Int,
  /** The share of pairs that are equal. */
  agreement: Schema.Finite,
  /** Cohen's kappa: 1 is full agreement, 0 that of chance. Null if all ratings of both raters are equal, which leaves no chance. */
  kappa: Schema.NullOr(Schema.Finite),
  /** The interval of kappa, over the items; null if kappa is null. */
  low: Schema.NullOr(Schema.Finite),
  high: Schema.NullOr(Schema.Finite),
})
export type Agreement = typeof Agreement.Type

/** Pairs of ratings as numbers: the pairs of item `i` stand at `starts[i]` to `starts[i + 1]`. */
interface NumberedPairs {
  readonly categories: number
  readonly starts: ReadonlyArray<number>
  readonly left: Int32Array
  readonly right: Int32Array
}

const numbered = (items: ReadonlyArray<ReadonlyArray<RatingPair>>): NumberedPairs => {
  const numbers = new Map<string, number>()
  const numberOf = (category: string): number => {
    const number = numbers.get(category) ?? numbers.size
    numbers.set(category, number)
    return number
  }
  const pairs = items.flat()
  const starts = [0]
  for (const { length } of items) starts.push(starts[starts.length - 1] + length)
  const left = Int32Array.from(pairs, ([category]) => numberOf(category))
  const right = Int32Array.from(pairs, ([, category]) => numberOf(category))
  return { categories: numbers.size, starts, left, right }
}

/** How often each rater used each category, and how often both used the same one. */
interface RatingCounts {
  readonly left: Float64Array
  readonly right: Float64Array
  equal: number
  total: number
}

/** Counts the ratings of some items, which are given by their positions; an item counts as often as it is given. */
const countsOf = (pairs: NumberedPairs, items: Iterable<number>): RatingCounts => {
  const [left, right] = [new Float64Array(pairs.categories), new Float64Array(pairs.categories)]
  const counts = { left, right, equal: 0, total: 0 }
  for (const item of items) {
    const end = pairs.starts[item + 1]
    for (let at = pairs.starts[item]; at < end; at++) {
      left[pairs.left[at]]++
      right[pairs.right[at]]++
      if (pairs.left[at] === pairs.right[at]) counts.equal++
      counts.total++
    }
  }
  return counts
}

const expectedAgreement = ({ left, right, total }: RatingCounts): number =>
  left.reduce((sum, count, category) => sum + count * right[category], 0) / total ** 2

const kappaOf = (counts: RatingCounts): number | undefined => {
  const expected = expectedAgreement(counts)
  return expected < 1 ? (counts.equal / counts.total - expected) / (1 - expected) : undefined
}

/**
 * Computes Cohen's kappa: (observed agreement − expected agreement) / (1 − expected agreement), where the expected agreement is
 * that of raters who use each category as often, but independently. Undefined if both raters always give the same rating.
 */
export const cohensKappa = (pairs: ReadonlyArray<RatingPair>): number | undefined =>
  kappaOf(countsOf(numbered([pairs]), [0]))

/**
 * Computes the standard error of kappa (Fleiss, Cohen and Everitt 1969) from the part that each item has in kappa. The pairs of
 * an item are alike, so their parts are added before they are squared.
 */
const standardError = (pairs: NumberedPairs, counts: RatingCounts): number => {
  const { left, right, equal, total } = counts
  const [observed, expected] = [equal / total, expectedAgreement(counts)]
  const mean = observed - 2 * expected + observed * expected
  let squares = 0
  for (let item = 0; item + 1 < pairs.starts.length; item++) {
    let part = 0
    for (let at = pairs.starts[item]; at < pairs.starts[item + 1]; at++) {
      const chance = (right[pairs.left[at]] + left[pairs.right[at]]) / total
      part += (pairs.left[at] === pairs.right[at] ? 1 - expected : 0) - (1 - observed) * chance - mean
    }
    squares += part * part
  }
  return Math.sqrt(squares) / (total * (1 - expected) ** 2)
}

/** From so many pairs on, kappa counts as normally distributed, as it does from `manyValues` items on. */
const manyPairs = 20 * manyValues

/** Returns the kappas of samples that are drawn from the items with replacement, sorted. */
const resampledKappas = (pairs: NumberedPairs, { resamples = 2000, seed = 0 }: Resampling): Float64Array => {
  const items = pairs.starts.length - 1
  const random = stream(seed, "kappa", items)
  const drawn = new Int32Array(items)
  const kappas: Array<number> = []
  for (let at = 0; at < resamples; at++) {
    for (let item = 0; item < items; item++) drawn[item] = random.integer(items)
    // A resample in which all ratings are equal has no kappa.
    const value = kappaOf(countsOf(pairs, drawn))
    if (value !== undefined) kappas.push(value)
  }
  return Float64Array.from(kappas).sort()
}

/**
 * Computes the agreement of two raters, with an interval of kappa: by the bootstrap, or from 5,000 items or 100,000 pairs on by the
 * normal distribution. Each item is a list of pairs, such as the ratings of several answers to one question: they are alike, so
 * they are drawn together. Null if there are no pairs.
 */
export const agreementOf = (
  items: ReadonlyArray<ReadonlyArray<RatingPair>>,
  how: Resampling = {},
): Agreement | null => {
  const rated = items.filter(({ length }) => length > 0)
  if (rated.length === 0) return null
  const pairs = numbered(rated)
  const counts = countsOf(pairs, rated.keys())
  const { total } = counts
  const summary = { items: rated.length, pairs: total, agreement: counts.equal / total }
  const kappa = kappaOf(counts)
  if (kappa === undefined) return { ...summary, kappa: null, low: null, high: null }
  const { confidence = 0.95 } = how
  if (rated.length >= manyValues || total >= manyPairs) {
    const half = normalQuantile((1 + confidence) / 2) * standardError(pairs, counts)
    return { ...summary, kappa, low: Math.max(-1, kappa - half), high: Math.min(1, kappa + half) }
  }
  const sorted = resampledKappas(pairs, how)
  if (sorted.length === 0) return { ...summary, kappa, low: kappa, high: kappa }
  const [low, high] = [quantile(sorted, (1 - confidence) / 2), quantile(sorted, (1 + confidence) / 2)]
  return { ...summary, kappa, low: Math.min(low, kappa), high: Math.max(high, kappa) }
}
