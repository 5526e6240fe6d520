import { assert, describe, it } from "@effect/vitest"
import { groupAdvantages } from "../../../src/rl/returns/groupAdvantages.ts"

describe("groupAdvantages", () => {
  const rewards = Float64Array.of(1, 0, 3, 3, 2, 5)
  // The members of group 7 lie apart; group 3 has equal rewards; group 9 has one member.
  const groups = [7, 7, 3, 3, 7, 9]

  const cases = [
    ["mean", { baseline: "mean" }, [0, -1, 0, 0, 1, 0]],
    ["sample deviation", { baseline: "mean", deviation: "sample", epsilon: 0.5 }, [0, -2 / 3, 0, 0, 2 / 3, 0]],
    ["population deviation", { baseline: "mean", deviation: "population", epsilon: 0 }, [0, -1.5, 0, 0, 1.5, 0]],
    [
      "batch deviation",
      { baseline: "mean", deviation: "batch", epsilon: 0 },
      [0, -Math.sqrt(3), 0, 0, Math.sqrt(3), 0],
    ],
    [
      "batch deviation without dropped groups",
      { baseline: "mean", deviation: "batch", epsilon: 0, zeroDeviation: "drop" },
      [0, -Math.sqrt(1.5), 0, 0, Math.sqrt(1.5), 0],
    ],
    ["leave one out", { baseline: "leave_one_out" }, [0, -1.5, 0, 0, 1.5, 0]],
  ] as const
  for (const [name, settings, expected] of cases)
    it(name, () => {
      const { advantages } = groupAdvantages({ rewards, groups, ...settings })
      const scale = name === "population deviation" ? Math.sqrt(1.5) / 1.5 : 1
      expected.forEach((value, row) => assert.closeTo(advantages[row], value * scale, 1e-12))
    })

  it("has no advantages below 0 with positiveOnly", () => {
    const { advantages } = groupAdvantages({ rewards, groups, baseline: "leave_one_out", positiveOnly: true })
    assert.deepStrictEqual([...advantages], [0, 0, 0, 0, 1.5, 0])
  })

  it("keeps groups of equal rewards, or drops them, and counts them", () => {
    const { advantages: _, ...kept } = groupAdvantages({ rewards, groups, baseline: "mean" })
    assert.deepStrictEqual(kept, {
      kept: Uint8Array.of(1, 1, 1, 1, 1, 1),
      groups: 3,
      zeroDeviationGroups: 2,
      droppedGroups: 0,
    })
    const { advantages: __, ...dropped } = groupAdvantages({ rewards, groups, baseline: "mean", zeroDeviation: "drop" })
    assert.deepStrictEqual(dropped, {
      kept: Uint8Array.of(1, 1, 0, 0, 1, 0),
      groups: 3,
      zeroDeviationGroups: 2,
      droppedGroups: 2,
    })
  })

  it("gives exactly 0 where all rewards are equal, although their computed mean is another number", () => {
    const equal = Float64Array.of(0.1, 0.1, 0.1)
    const settings = { baseline: "mean", deviation: "sample", epsilon: 0 } as const
    assert.deepStrictEqual(
      groupAdvantages({ rewards: equal, groups: [0, 0, 0], ...settings }).advantages,
      Float64Array.of(0, 0, 0),
    )
  })

  it("returns numbers of the rewards' type", () => {
    const { advantages } = groupAdvantages({ rewards: Float32Array.of(1, 0), groups: [0, 0], baseline: "mean" })
    assert.deepStrictEqual(advantages, Float32Array.of(0.5, -0.5))
  })

  it("names what it cannot use", () => {
    const compute = (change: object) => () => groupAdvantages({ rewards, groups, baseline: "mean", ...change })
    assert.throws(compute({ groups: [0] }), RangeError, "groups: expected 6 rows, found 1")
    assert.throws(compute({ groups: [0, 0, 0.5, 0, 0, 0] }), RangeError, "groups[2]: expected an integer, found 0.5")
    const spoilt = Float64Array.of(1, NaN, 0, 0, 0, 0)
    assert.throws(compute({ rewards: spoilt }), RangeError, "rewards[1]: expected a finite number, found NaN")
    assert.throws(compute({ epsilon: -1 }), RangeError, "epsilon: expected a number from 0 on, found -1")
  })
})
