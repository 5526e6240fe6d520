import { assert, describe, it } from "@effect/vitest"
import { compare, variableOf } from "../../bench/against.ts"

describe("bench --against", () => {
  it("measures both by turns, of which each goes first in turn, and gives medians and ratios", async () => {
    const values = { false: [100, 90, 300], true: [50, 30, 100] }
    const order: Array<boolean> = []
    const measure = async (against: boolean): Promise<number> => {
      order.push(against)
      return values[`${against}`].shift() ?? 0
    }
    const found = await compare(3, { higherIsBetter: true }, measure)
    assert.deepStrictEqual(order, [false, true, true, false, false, true])
    assert.deepStrictEqual(found, { value: 100, against: 50, ratio: 3, interval: [2, 3], ratios: [2, 3, 3] })
  })

  it("says how many times as fast also where less is better", async () => {
    const found = await compare(2, { higherIsBetter: false }, async (against) => (against ? 30 : 20))
    assert.deepStrictEqual(found, { value: 20, against: 30, ratio: 1.5, interval: [1.5, 1.5], ratios: [1.5, 1.5] })
  })

  it("takes an environment variable with any value, also an empty one, and nothing else", () => {
    assert.deepStrictEqual(variableOf("EFFECT_RL_WIDE=0"), ["EFFECT_RL_WIDE", "0"])
    assert.deepStrictEqual(variableOf("A=b=c"), ["A", "b=c"])
    assert.deepStrictEqual(variableOf("A="), ["A", ""])
    for (const text of ["EFFECT_RL_WIDE", "=0", "a b=1", "1A=2", ""]) assert.isUndefined(variableOf(text), text)
  })
})
