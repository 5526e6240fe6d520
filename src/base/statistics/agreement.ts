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
import { meanOf, quantile, type Resampling } from "./resampling.ts"

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
  /** The interval of kappa, by resampling the items; null if kappa is null. */
  low: Schema.NullOr(Schema.Finite),
  high: Schema.NullOr(Schema.Finite),
})
export type Agreement = typeof Agreement.Type

/** Returns the share of pairs that are equal. */
const observedAgreement = (pairs: ReadonlyArray<RatingPair>): number =>
  meanOf(pairs.map(([left, right]) => (left === right ? 1 : 0)))

/**
 * Computes Cohen's kappa: (observed agreement − expected agreement) / (1 − expected agreement), where the expected agreement is
 * that of raters who use each category as often, but independently. Undefined if both raters always give the same rating.
 */
export const cohensKappa = (pairs: ReadonlyArray<RatingPair>): number | undefined => {
  const counts = new Map<string, { left: number; right: number }>()
  const countOf = (category: string) => {
    const count = counts.get(category) ?? { left: 0, right: 0 }
    counts.set(category, count)
    return count
  }
  for (const [left, right] of pairs) {
    countOf(left).left++
    countOf(right).right++
  }
  const expected = [...counts.values()].reduce((sum, { left, right }) => sum + left * right, 0) / pairs.length ** 2
  return expected < 1 ? (observedAgreement(pairs) - expected) / (1 - expected) : undefined
}

/**
 * Computes the agreement of two raters, with a bootstrap interval of kappa. Each item is a list of pairs, such as the ratings of
 * several answers to one question: they are alike, so they are drawn together. Null if there are no pairs.
 */
export const agreementOf = (
  items: ReadonlyArray<ReadonlyArray<RatingPair>>,
  { resamples = 2000, confidence = 0.95, seed = 0 }: Resampling = {},
): Agreement | null => {
  const rated = items.filter(({ length }) => length > 0)
  const pairs = rated.flat()
  if (pairs.length === 0) return null
  const summary = { items: rated.length, pairs: pairs.length, agreement: observedAgreement(pairs) }
  const kappa = cohensKappa(pairs)
  if (kappa === undefined) return { ...summary, kappa: null, low: null, high: null }
  const random = stream(seed, "kappa", rated.length)
  const kappas: Array<number> = []
  for (let at = 0; at < resamples; at++) {
    const drawn = rated.flatMap(() => rated[random.integer(rated.length)])
    // A resample in which all ratings are equal has no kappa.
    const value = cohensKappa(drawn)
    if (value !== undefined) kappas.push(value)
  }
  const sorted = Float64Array.from(kappas).sort()
  if (sorted.length === 0) return { ...summary, kappa, low: kappa, high: kappa }
  const [low, high] = [quantile(sorted, (1 - confidence) / 2), quantile(sorted, (1 + confidence) / 2)]
  return { ...summary, kappa, low: Math.min(low, kappa), high: Math.max(high, kappa) }
}
