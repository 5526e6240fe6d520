import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { bootstrap, interquartileMean } from "../../src/statistics/resampling.ts"
import { aggregate, aggregateCurves } from "../../src/statistics/statistics.ts"

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

  it("of nothing is refused", () => {
    assert.throws(() => aggregate([]), /there are no runs/)
  })
})

describe("curves", () => {
  it("are joined where all of them have a point", () => {
    const joined = aggregateCurves([
      [
        { step: 10, value: 1 },
        { step: 20, value: 3 },
      ],
      [
        { step: 10, value: 2 },
        { step: 30, value: 9 },
      ],
    ])
    assert.deepEqual(
      joined.map(({ step, mean, runs }) => ({ step, mean, runs })),
      [{ step: 10, mean: 1.5, runs: 2 }],
    )
  })
})
