import { assert, describe, it } from "vitest"
import { paired } from "../../../src/base/statistics/paired.ts"
import { meanDifference, tango } from "../../../src/base/statistics/pairedInterval.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const sidesOf = (values: ReadonlyArray<readonly [number, number]>) =>
  [0, 1].map((side) => new Map(values.map((pair, task) => [String(task), pair[side]])))

const compared = (values: ReadonlyArray<readonly [number, number]>, confidence = 0.95) => {
  const [left, right] = sidesOf(values)
  const result = paired(left, right, { confidence })
  if (result === null) return assert.fail("there are no tasks")
  return result
}

const times = <A>(count: number, value: A): ReadonlyArray<A> => Array.from({ length: count }, () => value)

describe("Tango's interval", () => {
  it.for<readonly [string, Parameters<typeof tango>[0], readonly [number, number]]>([
    ["airway hyper-responsiveness (Bentur et al. 2009)", { pairs: 21, rises: 1, falls: 7 }, [-0.517, -0.026]],
    ["complete response (Cavo et al. 2012)", { pairs: 161, rises: 6, falls: 16 }, [-0.124, -0.0054]],
    ["no change, as Wilson's of none", { pairs: 100, rises: 0, falls: 0 }, [-0.037, 0.037]],
    ["only falls", { pairs: 2, rises: 0, falls: 2 }, [-1, 0.3152]],
    ["only rises", { pairs: 2, rises: 2, falls: 0 }, [-0.3152, 1]],
  ])("of %s", ([, changed, expected]) => {
    const interval = tango(changed)
    for (const at of [0, 1] as const) assert.closeTo(interval[at], expected[at], 5e-4)
    const [wideLow, wideHigh] = tango(changed, 0.99)
    assert.isTrue(wideLow <= interval[0] && wideHigh >= interval[1])
  })

  it("contains the difference in at least 93 % of evaluations, whatever their size", () => {
    // All outcomes of n pairs, each with its chance.
    const coverage = (pairs: number, rise: number, fall: number): number => {
      let covered = 0
      let ways = (1 - rise - fall) ** pairs
      for (let rises = 0; rises <= pairs; rises++) {
        let chance = ways
        for (let falls = 0; falls <= pairs - rises; falls++) {
          const [low, high] = tango({ pairs, rises, falls })
          if (low <= rise - fall && rise - fall <= high) covered += chance
          chance *= (((pairs - rises - falls) / (falls + 1)) * fall) / (1 - rise - fall)
        }
        ways *= (((pairs - rises) / (rises + 1)) * rise) / (1 - rise - fall)
      }
      return covered
    }
    for (const pairs of [2, 6, 12, 30])
      for (const [rise, fall] of [
        [0.1, 0.1],
        [0.05, 0.3],
        [0.2, 0.4],
        [0.01, 0.04],
      ] as const)
        // prettier-ignore
        assert.isAbove(coverage(pairs, rise, fall), 0.93, `${pairs} pairs, ${rise} ${fall}`)
  })
})

describe("Student's interval of the differences", () => {
  const is = ([low, high]: readonly [number, number], [wantedLow, wantedHigh]: readonly [number, number]) => {
    assert.closeTo(low, wantedLow, 1e-5)
    assert.closeTo(high, wantedHigh, 1e-5)
  }

  it("is that of the differences alone if they differ", () => {
    // The t of 5 degrees of freedom is 2.570582, that of 3 is 3.182446.
    is(meanDifference([-12, -8, -10, -11, -9, -10], { scale: 900 }), [-11.484126, -8.515874])
    is(meanDifference([1, 2, 3, 4], { scale: 4 }), [0.44574, 4.55426])
    assert.isAbove(meanDifference([1, 2, 3, 4], { scale: 4, confidence: 0.99 })[1], 4.55427)
  })

  it("is that of the differences and two more, on both sides, if all are equal, also if rounding sets them apart", () => {
    // The t of 7 degrees of freedom is 2.364624; the added differences are 1 and −1, and 0 and −20.
    is(meanDifference(times(6, 0), { scale: 1 }), [-0.446872, 0.446872])
    is(meanDifference(times(6, -10), { scale: 900 }), [-14.46872, -5.53128])
    const rounded = [0.8 - 0.7, 0.9 - 0.8, 0.3 - 0.2]
    assert.isAbove(new Set(rounded).size, 1)
    is(meanDifference(rounded, { scale: 1 }), meanDifference(times(3, 0.1), { scale: 1 }))
    const nearlyNone = 0.1 + 0.2 - 0.3
    assert.isAbove(nearlyNone, 0)
    is(meanDifference(times(6, nearlyNone), { scale: 1 }), [-0.446872, 0.446872])
    const [low, high] = meanDifference([5], { scale: 5 })
    assert.isTrue(low < 0 && high > 10)
  })

  it("is widened in the same way if most are equal", () => {
    const differences = [...times(19, 0), 1]
    const [low, high] = meanDifference(differences, { scale: 1 })
    // The added differences are 1 and −1. The t of 21 degrees of freedom is 2.079614.
    const half = 2.079614 * Math.sqrt((3 - 1 / 22) / 21 / 22)
    is([low, high], [1 / 22 - half, 1 / 22 + half])
    // Adding a constant to all differences moves the interval with them.
    is(
      meanDifference(
        differences.map((value) => value - 7),
        { scale: 1 },
      ),
      [low - 7, high - 7],
    )
  })

  it("contains the mean difference nearly as often as it says", () => {
    const random = stream(7, "paired")
    const normal = () => Math.sqrt(-2 * Math.log(1 - random.uniform())) * Math.cos(2 * Math.PI * random.uniform())
    const one = (chance: number, value: number) => () => (random.uniform() < chance ? value : 0)
    const draws: Readonly<Record<string, readonly [draw: () => number, mean: number]>> = {
      normal: [normal, 0],
      even: [() => random.uniform() - 0.5, 0],
      "three values": [() => (random.integer(3) - 1) / 2, 0],
      "rounded, with most equal": [() => Math.round(normal() / 2 - 10), -10],
      "a rise in 5 %": [one(0.05, 1), 0.05],
      "a rise in 20 %": [one(0.2, 1), 0.2],
      "a fall in 40 %": [one(0.4, -3), -1.2],
    }
    for (const [name, [draw, mean]] of Object.entries(draws)) {
      for (const tasks of [3, 6, 12, 20, 30]) {
        const evaluations = 500
        let missed = 0
        for (let at = 0; at < evaluations; at++) {
          const differences = Array.from({ length: tasks }, draw)
          const [low, high] = meanDifference(differences, { scale: 3 })
          if (low > mean || high < mean) missed++
        }
        assert.isAtMost(missed / evaluations, 0.095, `${name}, ${tasks} tasks`)
      }
    }
  })
})

describe("a comparison of two evaluations", () => {
  it("of few tasks, or of equal ones, has an interval with a width that includes the difference", () => {
    const cases = [
      times(2, [1, 0] as const),
      times(12, [1, 1] as const),
      times(2, [0.5, 0.25] as const),
      times(12, [0.5, 0.5] as const),
      times(12, [900, 905] as const),
      [[3, 3], [5, 5], [4, 4]] as const, // prettier-ignore
    ]
    for (const values of cases) {
      const { difference, low, high } = compared(values)
      assert.isTrue(low <= difference && difference <= high && high - low > 0, JSON.stringify([values, low, high]))
    }
    // If no task has a difference, one of another task may be as large as the values are apart.
    const { low, high } = compared([[3, 3], [5, 5], [4, 4]]) // prettier-ignore
    assert.deepEqual([low, high], [...meanDifference([0, 0, 0], { scale: 2 })])
  })

  it("finds no difference between values that only rounding sets apart", () => {
    const values = times(12, [0.3, 0.1 + 0.2] as const)
    const result = compared(values)
    assert.deepEqual(result, { ...compared(times(12, [0.3, 0.3] as const)), rightMean: result.rightMean })
    assert.deepEqual([result.better, result.p], [0, 1])
    assert.isTrue(result.low < -0.01 && result.high > 0.01)
  })

  it("changes its sign if the sides are swapped", () => {
    for (const values of [
      [
        [0, 1],
        [1, 1],
        [0, 1],
        [1, 0],
      ],
      [
        [2, 1],
        [0, 4],
        [3, 7],
      ],
    ] as const) {
      // prettier-ignore
      const [one, other] = [compared(values), compared(values.map(([left, right]) => [right, left] as const))]
      assert.closeTo(one.low, -other.high, 1e-9)
      assert.closeTo(one.high, -other.low, 1e-9)
    }
  })
})
