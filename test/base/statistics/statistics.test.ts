import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { bootstrap, interquartileMean, stratifiedBootstrap } from "../../../src/base/statistics/resampling.ts"
import { aggregate, aggregateCurves } from "../../../src/base/statistics/statistics.ts"

const values = fc.array(fc.double({ min: -1000, max: 1000, noNaN: true }), { minLength: 1, maxLength: 30 })

describe("the interquartile mean", () => {
  it("leaves a quarter out at either end, as SciPy's trim_mean(0.25) does", () => {
    assert.strictEqual(interquartileMean([0, 480, 490, 500]), 485)
    assert.closeTo(interquartileMean([9, 1, 5]), 5, 1e-12)
    assert.strictEqual(interquartileMean([1, 2, 3, 4, 5, 6, 7, 8, 9, 1000]), 5.5)
  })

  it("moves with its values, lies among them, and does not care for their order", () => {
    fc.assert(
      fc.property(values, fc.double({ min: -10, max: 10, noNaN: true }), (given, shift) => {
        const iqm = interquartileMean(given)
        assert.isTrue(iqm >= Math.min(...given) - 1e-9 && iqm <= Math.max(...given) + 1e-9)
        assert.closeTo(interquartileMean(given.map((value) => value + shift)), iqm + shift, 1e-6)
        assert.strictEqual(interquartileMean(given.toReversed()), iqm)
      }),
    )
  })
})

describe("a bootstrap interval", () => {
  it("of the mean has the width that the normal law gives it", () => {
    // Deviation 1, 100 values: a 95 % interval is ± 1.96 / 10.
    const given = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? 1 : -1))
    const [low, high] = bootstrap(given, (all) => all.reduce((sum, one) => sum + one, 0) / all.length)
    assert.closeTo(low, -0.196, 0.03)
    assert.closeTo(high, 0.196, 0.03)
  })

  it("is the same each time, and no interval at all where all values are equal", () => {
    fc.assert(
      fc.property(values, (given) => {
        assert.deepEqual(aggregate(given), aggregate(given))
        const { low, high, iqm } = aggregate(given.map(() => 7))
        assert.deepEqual([low, iqm, high], [7, 7, 7])
      }),
      { numRuns: 10 },
    )
  })

  it("that is stratified draws from each group as many values as it has", () => {
    const mean = (all: ReadonlyArray<number>): number => all.reduce((sum, one) => sum + one, 0) / all.length
    const group = Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? 1 : -1))
    // The distance of the groups does not widen the interval: that of 100 values of deviation 1 is ± 1.96 / 10.
    const [low, high] = stratifiedBootstrap([group, group.map((value) => value + 100)], (all) => mean(all.flat()))
    assert.closeTo(low, 50 - 0.196, 0.03)
    assert.closeTo(high, 50 + 0.196, 0.03)
    fc.assert(
      fc.property(values, fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 1, maxLength: 4 }), (given, equal) => {
        const how = { resamples: 50 }
        assert.deepEqual(
          stratifiedBootstrap([given], ([all]) => interquartileMean(all), how),
          bootstrap(given, interquartileMean, how),
        )
        // Groups of equal values leave nothing to chance.
        const constant = mean(equal)
        const strata = equal.map((value) => [value, value])
        assert.deepEqual(
          stratifiedBootstrap(strata, (all) => mean(all.flat()), how),
          [constant, constant],
        )
      }),
      { numRuns: 10 },
    )
  })

  it("of nothing is refused", () => {
    assert.throws(() => aggregate([]), /there are no runs/)
  })
})

describe("curves", () => {
  const of = (points: Readonly<Record<number, number>>) =>
    Object.entries(points).map(([step, value]) => ({ step: Number(step), value }))

  it("are joined over the steps that all of them cover, by interpolation", () => {
    const joined = aggregateCurves([of({ 10: 1, 20: 3, 40: 0 }), of({ 5: 0, 10: 2, 30: 9 })])
    assert.deepEqual(
      joined.map(({ step, mean, runs }) => ({ step, mean, runs })),
      [
        { step: 10, mean: 1.5, runs: 2 },
        { step: 20, mean: 4.25, runs: 2 },
        { step: 30, mean: 5.25, runs: 2 },
      ],
    )
  })

  it(
    "keep all their points if they were measured at the same steps, and a few hundred if not",
    { tags: "slow" },
    () => {
      const long = of(Object.fromEntries(Array.from({ length: 400 }, (_, index) => [index, 1])))
      assert.lengthOf(aggregateCurves([long]), 400)
      assert.lengthOf(aggregateCurves([long, [0, 1.5, 399].map((step) => ({ step, value: 1 }))]), 300)
    },
  )

  it("without a common step have no point", () => {
    assert.deepEqual(aggregateCurves([of({ 10: 1 }), of({ 20: 1, 30: 2 })]), [])
    assert.deepEqual(aggregateCurves([of({ 10: 1 }), []]), [])
  })
})
