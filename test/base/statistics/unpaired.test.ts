import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  compareAlgorithms,
  improvement,
  normalised,
  probabilityOfImprovement,
  unpaired,
} from "../../../src/base/statistics/unpaired.ts"

const side = fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 2, maxLength: 5 })

/** Returns all ways to choose `count` of the values, each with the values that are left. */
const divisions = (
  values: ReadonlyArray<number>,
  count: number,
): ReadonlyArray<{ readonly left: ReadonlyArray<number>; readonly right: ReadonlyArray<number> }> => {
  if (count > values.length) return []
  const [first, ...rest] = values
  if (first === undefined) return [{ left: [], right: [] }]
  return [
    ...divisions(rest, count).map(({ left, right }) => ({ left: [first, ...left], right })),
    ...(count === 0 ? [] : divisions(rest, count - 1).map(({ left, right }) => ({ left, right: [first, ...right] }))),
  ]
}

describe("two sets of trainings", () => {
  it("have the probability of improvement of their comparison also without its test", () => {
    fc.assert(
      fc.property(fc.array(fc.record({ left: side, right: side }), { minLength: 1, maxLength: 3 }), (environments) => {
        const how = { resamples: 50 }
        assert.deepStrictEqual(improvement(environments, how), unpaired(environments, how).improvement)
      }),
      { numRuns: 5 },
    )
    assert.throws(() => improvement([{ left: [1], right: [] }]), /expected scores on both sides/)
  })

  it("are compared as by the tables of Mann and Whitney", () => {
    assert.closeTo(unpaired([{ left: [1, 2, 3], right: [4, 5, 6] }]).p ?? 1, 0.1, 1e-12)
    const five = unpaired([{ left: [1, 2, 3, 4, 5], right: [6, 7, 8, 9, 10] }])
    assert.closeTo(five.p ?? 1, 2 / 252, 1e-12)
    assert.closeTo(five.smallestP, 2 / 252, 1e-12)
    // U = 7: 39 of the 252 divisions have no more than that.
    assert.closeTo(unpaired([{ left: [1, 2, 3, 4, 9], right: [5, 6, 7, 8, 2.5] }]).p ?? 1, 78 / 252, 1e-12)
  })

  it("are compared in a moment if there are hundreds of each", { tags: "slow" }, () => {
    const scores = (shift: number) => Array.from({ length: 1500 }, (_, index) => ((index * 7919) % 1500) + shift)
    const { improvement, p } = unpaired([{ left: scores(0), right: scores(300) }], { resamples: 50 })
    // A pair is won by the right side unless the left score is at least 300 larger: 1200 · 1201 / 2 of them, with ties as half.
    assert.closeTo(improvement.value, 1 - (1200 * 1200) / 2 / 1500 ** 2, 1e-12)
    assert.closeTo(p ?? 1, 1 / 1334, 1e-12)
  })

  it("have the p-value that counting all divisions gives, also with ties", () => {
    fc.assert(
      fc.property(side, side, (left, right) => {
        const distance = (scores: { left: ReadonlyArray<number>; right: ReadonlyArray<number> }) =>
          Math.abs(probabilityOfImprovement(scores) - 0.5)
        const all = divisions([...left, ...right], right.length)
        const reached = all.filter((one) => distance(one) >= distance({ left, right }) - 1e-9)
        assert.closeTo(unpaired([{ left, right }], { resamples: 2 }).p ?? 1, reached.length / all.length, 1e-9)
      }),
      { numRuns: 30 },
    )
  })

  it("swap their values, and keep the p-value, if they are swapped", () => {
    const [left, right] = [[1, 5, 2, 8], [3, 4, 9, 9, 7]] // prettier-ignore
    const [one, other] = [unpaired([{ left, right }]), unpaired([{ left: right, right: left }])]
    assert.strictEqual(one.p, other.p)
    assert.strictEqual(one.difference.value, -other.difference.value)
    assert.closeTo(one.improvement.value, 1 - other.improvement.value, 1e-12)
    assert.deepEqual([one.left, one.leftRuns], [other.right, other.rightRuns])
  })

  it("have intervals around their values, and none with one run", () => {
    const { difference, improvement } = unpaired([{ left: [1, 2, 3, 4], right: [3, 4, 5, 6] }])
    assert.strictEqual(difference.value, 2)
    assert.isTrue((difference.low ?? 9) < 2 && (difference.high ?? 0) > 2)
    assert.strictEqual(improvement.value, 14 / 16)
    assert.isTrue((improvement.low ?? 9) < 0.8 && improvement.high === 1)
    const single = unpaired([{ left: [1], right: [3, 4] }])
    assert.deepEqual([single.difference, single.p], [{ value: 2.5, low: null, high: null }, null])
    assert.throws(() => unpaired([{ left: [], right: [1] }]), /expected scores on both sides/)
  })

  it("are compared over environments on one scale, drawing divisions within each", () => {
    const small = { left: [1, 2, 3], right: [4, 5, 6] }
    const large = { left: [100, 200, 300], right: [400, 500, 600] }
    const { environments, overall, profiles, leftOut } =
      compareAlgorithms(
        new Map([["small", small.left], ["large", large.left], ["other", [1]]]), // prettier-ignore
        new Map([["small", small.right], ["large", large.right]]), // prettier-ignore
      ) ?? assert.fail()
    assert.deepEqual(
      environments.map(({ environment }) => environment),
      ["large", "small"],
    )
    assert.deepEqual(leftOut, ["other"])
    assert.deepEqual(normalised(large).right, normalised(small).right)
    assert.strictEqual(overall?.improvement.value, 1)
    // Both environments separate the sides in 2 of 20 · 20 divisions.
    assert.closeTo(overall?.p ?? 1, 2 / 400, 0.002)
    assert.closeTo(overall?.smallestP ?? 1, 2 / 400, 1e-12)
    const at = (threshold: number) => profiles.find((profile) => profile.threshold === threshold)
    assert.deepEqual([at(0.5)?.left.value, at(0.5)?.right.value, at(0.9)?.right.value], [0, 1, 1 / 3])
  })

  it("have no comparison without a common environment", () => {
    assert.isNull(compareAlgorithms(new Map([["a", [1]]]), new Map([["b", [1]]])))
  })
})
