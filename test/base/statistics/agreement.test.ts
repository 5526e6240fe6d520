import { assert, describe, it } from "vitest"
import { stream } from "../../../src/base/rng/Rng.ts"
import { quantile } from "../../../src/base/statistics/resampling.ts"
import { agreementOf, cohensKappa, type RatingPair } from "../../../src/base/statistics/agreement.ts"

/** The pairs of a table: row `i`, column `j` counts the items that the raters gave the categories i and j. */
const pairsOf = (table: ReadonlyArray<ReadonlyArray<number>>): ReadonlyArray<RatingPair> =>
  table.flatMap((row, left) =>
    row.flatMap((count, right) => Array.from({ length: count }, (): RatingPair => [String(left), String(right)])),
  )

describe("Cohen's kappa", () => {
  it.for<readonly [string, ReadonlyArray<ReadonlyArray<number>>, number]>([
    ["50 grant proposals (Wikipedia)", [[20, 5], [10, 15]], 0.4], // prettier-ignore
    ["the same agreement by other shares (Wikipedia)", [[45, 15], [25, 15]], 0.1304], // prettier-ignore
    ["the same agreement, evenly divided (Wikipedia)", [[25, 35], [5, 35]], 0.2593], // prettier-ignore
    ["100 utterances (Artstein and Poesio 2008)", [[20, 20], [10, 50]], 0.3478], // prettier-ignore
    ["three categories (Cohen 1960)", [[88, 14, 18], [10, 40, 10], [2, 6, 12]], 0.4915], // prettier-ignore
    ["full agreement", [[5, 0], [0, 7]], 1], // prettier-ignore
    ["the opposite of each other", [[0, 5], [5, 0]], -1], // prettier-ignore
    ["independence", [[4, 4], [4, 4]], 0], // prettier-ignore
  ])("of %s", ([, table, kappa]) => {
    const pairs = pairsOf(table)
    assert.closeTo(cohensKappa(pairs) ?? NaN, kappa, 5e-5)
    // It doesn't matter who is the first rater.
    assert.closeTo(cohensKappa(pairs.map(([left, right]) => [right, left])) ?? NaN, kappa, 5e-5)
  })

  it("has none if both always give one rating", () => {
    assert.isUndefined(cohensKappa(pairsOf([[7]])))
    const same = agreementOf(pairsOf([[7]]).map((pair) => [pair]))
    assert.deepEqual(same, { items: 7, pairs: 7, agreement: 1, kappa: null, low: null, high: null })
    assert.isNull(agreementOf([[], []]))
  })

  it("has an interval that agrees with the normal one, and is the same for a seed", () => {
    const items = pairsOf([[20, 5], [10, 15]]).map((pair) => [pair]) // prettier-ignore
    const result = agreementOf(items, { seed: 3 })
    assert.deepEqual(agreementOf(items, { seed: 3 }), result)
    assert.notDeepEqual(agreementOf(items, { seed: 4 }), result)
    // Fleiss, Cohen and Everitt (1969): a standard error of 0.127, so 0.151 to 0.649.
    assert.closeTo(result?.low ?? NaN, 0.151, 0.04)
    assert.closeTo(result?.high ?? NaN, 0.649, 0.04)
    assert.deepInclude(result, { items: 50, pairs: 50, agreement: 0.7 })
  })

  it("has the interval of resampling the pairs one by one", () => {
    const items = pairsOf([[4, 2], [1, 5]]).map((pair, at) => (at % 3 === 0 ? [pair, pair] : [pair])) // prettier-ignore
    const random = stream(3, "kappa", items.length)
    const kappas = Array.from({ length: 300 }, () =>
      cohensKappa(items.flatMap(() => items[random.integer(items.length)])),
    )
    const sorted = Float64Array.from(kappas.filter((kappa) => kappa !== undefined)).sort()
    const { low, high } = agreementOf(items, { seed: 3, resamples: 300 }) ?? {}
    assert.deepEqual(
      [low, high],
      [(1 - 0.95) / 2, (1 + 0.95) / 2].map((share) => quantile(sorted, share)),
    )
  })

  it("has the normal interval for many items or pairs, without resampling", () => {
    // Fleiss, Cohen and Everitt (1969): for shares of these tables, the standard error is 0.127 times the root of 50 / n.
    const table = [[2000, 500], [1000, 1500]] // prettier-ignore
    const many = pairsOf(table).map((pair) => [pair])
    const error = 0.127 / Math.sqrt(100)
    const normal = agreementOf(many)
    assert.deepEqual(agreementOf(many, { seed: 4 }), normal)
    assert.closeTo(normal?.low ?? NaN, 0.4 - 1.96 * error, 1e-4)
    assert.closeTo(normal?.high ?? NaN, 0.4 + 1.96 * error, 1e-4)
    // Repeated answers show no more than one answer each.
    const repeated = pairsOf([[20, 5], [10, 15]]).map((pair) => Array.from({ length: 2000 }, () => pair)) // prettier-ignore
    const ofFew = agreementOf(repeated)
    assert.deepInclude(ofFew, { items: 50, pairs: 100_000 })
    assert.closeTo((ofFew?.high ?? 0) - (ofFew?.low ?? 0), 2 * 1.96 * 0.127, 2e-3)
  })

  it("is as uncertain for answers that are repeated as for one answer each", () => {
    const once = pairsOf([[20, 5], [10, 15]]).map((pair) => [pair]) // prettier-ignore
    const repeated = once.map(([pair]) => [pair, pair, pair])
    const [one, three] = [agreementOf(once), agreementOf(repeated)]
    assert.deepEqual([three?.items, three?.pairs, three?.kappa], [50, 150, one?.kappa])
    assert.closeTo((three?.high ?? 0) - (three?.low ?? 0), (one?.high ?? 0) - (one?.low ?? 0), 1e-9)
  })
})
