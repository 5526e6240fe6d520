import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { interval, normalQuantile, wilson } from "../src/base/statistics/intervals.ts"
import { paired, permutationTest, signTest } from "../src/base/statistics/paired.ts"
import { bootstrap } from "../src/base/statistics/resampling.ts"
import {
  bestOf,
  majority,
  mean,
  passAt,
  type Reducer,
  type EpisodeScore,
} from "../src/agents/evaluate/report/reducers.ts"
import { tries } from "../test/house/tries.ts"

const value = fc.double({ min: -10, max: 10, noNaN: true })
const share = fc.constantFrom(0, 1)
const sample: fc.Arbitrary<EpisodeScore> = fc.record({
  value,
  answer: fc.option(fc.constantFrom("Paris", "paris.", "London", "\\boxed{London}", "Rome")),
})
const samples = fc.array(sample, { minLength: 1, maxLength: 8 })
const valued = (values: ReadonlyArray<number>): ReadonlyArray<EpisodeScore> =>
  values.map((one) => ({ value: one, answer: null }))

/** All choices of `k` of them. */
const choices = <A>(items: ReadonlyArray<A>, k: number): ReadonlyArray<ReadonlyArray<A>> => {
  if (k === 0) return [[]]
  if (items.length < k) return []
  const [first, ...rest] = items
  return [...choices(rest, k - 1).map((choice) => [first, ...choice]), ...choices(rest, k)]
}
const average = (values: ReadonlyArray<number>): number => values.reduce((sum, one) => sum + one, 0) / values.length

const reducers: Readonly<Record<string, Reducer>> = {
  mean,
  majority,
  "pass@2": passAt(2, 0),
  "best of 3": bestOf(3),
}

describe("reducers", () => {
  for (const [name, reduce] of Object.entries(reducers)) {
    it(`${name} doesn't depend on the order of the episodes`, () => {
      fc.assert(
        fc.property(
          samples.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))),
          ([all, shuffled]) => assert.strictEqual(reduce(shuffled), reduce(all)),
        ),
      )
    })
  }

  it("pass@k is the share of all choices of k episodes with one in it that reaches the threshold", () => {
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 8 }), fc.integer({ min: 1, max: 8 }), (values, k) => {
        const all = choices(values, k)
        const found = passAt(k, 0.5)(valued(values))
        if (all.length === 0) assert.isNull(found)
        else assert.closeTo(found ?? NaN, average(all.map((some) => (Math.max(...some) >= 0.5 ? 1 : 0))), 1e-12)
      }),
    )
  })

  it("the best of n is the mean of the best over all choices of n episodes", () => {
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 8 }), fc.integer({ min: 1, max: 8 }), (values, n) => {
        const all = choices(values, n)
        const found = bestOf(n)(valued(values))
        if (all.length === 0) assert.isNull(found)
        else assert.closeTo(found ?? NaN, average(all.map((some) => Math.max(...some))), 1e-9)
      }),
    )
  })

  it("of 0 and 1, pass@k is the best of k, and pass@1 the mean", () => {
    fc.assert(
      fc.property(fc.array(share, { minLength: 1, maxLength: 12 }), fc.integer({ min: 1, max: 12 }), (values, k) => {
        const all = valued(values)
        if (k > all.length) return
        assert.closeTo(passAt(k)(all) ?? NaN, bestOf(k)(all) ?? NaN, 1e-12)
        assert.closeTo(passAt(1)(all) ?? NaN, mean(all) ?? NaN, 1e-12)
      }),
    )
  })

  it("pass@k grows with k", () => {
    fc.assert(
      fc.property(fc.array(share, { minLength: 2, maxLength: 12 }), (values) => {
        const at = values.map((_, k) => passAt(k + 1)(valued(values)) ?? NaN)
        for (let k = 1; k < at.length; k++) assert.isAtLeast(at[k] + 1e-12, at[k - 1])
      }),
    )
  })

  it("the majority's value is that of an answer that more than half gave", () => {
    fc.assert(
      fc.property(samples, fc.integer({ min: 1, max: 9 }), value, (others, extra, worth) => {
        const votes = others.filter(({ answer }) => answer !== null).length
        const winning = Array.from({ length: votes + extra }, () => ({ value: worth, answer: "Berlin" }))
        assert.closeTo(majority([...others, ...winning]) ?? NaN, worth, 1e-9)
      }),
    )
  })
})

describe("intervals", () => {
  const either = fc.oneof(
    fc.array(value, { minLength: 1, maxLength: 30 }),
    fc.array(share, { minLength: 1, maxLength: 30 }),
  )

  it("hold the mean", () => {
    fc.assert(
      fc.property(either, fc.constantFrom(1, 50), (values, resamples) => {
        const { mean, low, high } = interval(values, { resamples })
        assert.closeTo(mean, average(values), 1e-12)
        assert.isAtMost(low, mean)
        assert.isAtLeast(high, mean)
      }),
    )
  })

  it("of values move and grow with the values", () => {
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 3, maxLength: 20 }),
        fc.integer({ min: 2, max: 9 }),
        value,
        (values, scale, shift) => {
          // 0.3 keeps them from being taken for shares.
          const plain = [...values, 0.3]
          const before = interval(plain, { resamples: 50 })
          const after = interval(
            plain.map((one) => one * scale + shift + 0.01),
            { resamples: 50 },
          )
          assert.closeTo(after.low, before.low * scale + shift + 0.01, 1e-6)
          assert.closeTo(after.high, before.high * scale + shift + 0.01, 1e-6)
        },
      ),
    )
  })

  it("of proportions stay within 0 and 1, mirror each other, and are narrower with less confidence and more tasks", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), fc.nat(), (trials, some) => {
        const successes = some % (trials + 1)
        const { low, high } = wilson(successes, trials)
        assert.isAtLeast(low, 0)
        assert.isAtMost(high, 1)
        const mirrored = wilson(trials - successes, trials)
        assert.closeTo(mirrored.low, 1 - high, 1e-12)
        const bolder = wilson(successes, trials, 0.8)
        assert.isBelow(bolder.high - bolder.low, high - low)
        const more = wilson(successes * 2, trials * 2)
        assert.isBelow(more.high - more.low, high - low)
      }),
    )
  })

  it("of proportions equal published values", () => {
    assert.closeTo(normalQuantile(0.975), 1.959963984540054, 1e-12)
    // Newcombe 1998, table I.
    const { low, high } = wilson(81, 263)
    assert.closeTo(low, 0.2553, 5e-5)
    assert.closeTo(high, 0.3662, 5e-5)
    assert.closeTo(wilson(0, 20).high, 0.1611, 5e-5)
  })
})

describe("comparisons by task", () => {
  const byTask = (values: ReadonlyArray<number>): ReadonlyMap<string, number> =>
    new Map(values.map((one, at) => [`task-${at}`, one]))
  const pair = fc
    .integer({ min: 1, max: 25 })
    .chain((length) => fc.tuple(...[0, 1].map(() => fc.array(value, { minLength: length, maxLength: length }))))
  const quick = { resamples: 50 }

  it("are symmetric in both sides", () => {
    fc.assert(
      fc.property(pair, ([left, right]) => {
        const one = paired(byTask(left), byTask(right), quick)
        const other = paired(byTask(right), byTask(left), quick)
        assert.isNotNull(one)
        assert.isNotNull(other)
        if (one === null || other === null) return
        assert.strictEqual(other.p, one.p)
        assert.strictEqual(other.permutationP, one.permutationP)
        assert.strictEqual(other.signP, one.signP)
        assert.strictEqual(other.difference, -one.difference + 0)
        assert.closeTo(other.low, -one.high, 1e-9)
        assert.closeTo(other.high, -one.low, 1e-9)
        assert.strictEqual(other.better, one.worse)
      }),
      { numRuns: tries(40) },
    )
  })

  it("do not depend on the order of the tasks, or on tasks that only one side has", () => {
    fc.assert(
      fc.property(pair, value, ([left, right], lone) => {
        const turned = new Map([...byTask(left), ["only here", lone] as const].toReversed())
        assert.deepStrictEqual(paired(turned, byTask(right), quick), paired(byTask(left), byTask(right), quick))
      }),
      { numRuns: tries(40) },
    )
  })

  it("of an evaluation with itself find no difference", () => {
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 20 }), (values) => {
        const found = paired(byTask(values), byTask(values), quick)
        assert.deepInclude(found, { difference: 0, better: 0, worse: 0, p: 1, signP: 1 })
        // Equal tasks leave open how much others would differ, in either direction alike.
        assert.isAtMost(found?.low ?? NaN, 0)
        assert.closeTo((found?.low ?? NaN) + (found?.high ?? NaN), 0, 1e-9)
      }),
    )
  })

  it("try all signs for few tasks: one of 2^n is as extreme, on either side", () => {
    for (let tasks = 1; tasks <= 14; tasks++) {
      assert.strictEqual(permutationTest(Array.from({ length: tasks }, (_, at) => at + 1)), 2 ** (1 - tasks))
      assert.closeTo(signTest(tasks, 0), 2 ** (1 - tasks), 1e-15)
    }
    assert.closeTo(signTest(8, 2), 0.109375, 1e-12)
    assert.strictEqual(paired(byTask([0, 0]), byTask([1, 0]))?.test, "mcnemar")
  })

  it("by drawn signs are close to those by all signs", () => {
    const differences = [0.4, -0.1, 0.3, 0.2, -0.3, 0.5, 0.1, 0.2, -0.2, 0.3, 0.1, -0.1, 0.2, 0.4]
    const all = permutationTest(differences)
    // A task more, of no weight: there are too many now to look at all.
    assert.closeTo(permutationTest([...differences, 1e-12]), all, 0.01)
  })
})

describe("of thousands of tasks", () => {
  const values = Array.from({ length: 6000 }, (_, at) => ((at * 7919) % 1000) / 1000)

  it("an interval equals the bootstrap's, without resampling", () => {
    const found = interval(values, { seed: 1 })
    assert.deepStrictEqual(interval(values, { seed: 2 }), found)
    const [low, high] = bootstrap(values, average, { resamples: 400 })
    const width = high - low
    assert.closeTo(found.low, low, width / 8)
    assert.closeTo(found.high, high, width / 8)
  })

  it("a permutation test equals the one with drawn signs, without drawing", () => {
    const ones = values.map((_, at) => (at < 3050 ? 1 : -1))
    const found = permutationTest(ones, 1)
    assert.strictEqual(permutationTest(ones, 2), found)
    // If all values are 1 or -1, it equals the sign test up to the latter's continuity correction.
    assert.closeTo(found, signTest(3050, 2950), 0.01)
    assert.isBelow(permutationTest(values), 1e-10)
    assert.isAbove(permutationTest(values), 0)
  })
})
