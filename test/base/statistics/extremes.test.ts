import { assert, describe, it } from "vitest"
import { highest, lowest } from "../../../src/base/statistics/extremes.ts"
import { normalised } from "../../../src/base/statistics/unpaired.ts"
import { bestOf } from "../../../src/agents/prompts/candidates.ts"
import { frontOf } from "../../../src/agents/prompts/front.ts"
import { validationCurve } from "../../../src/command/ui/curves/scoreCurves.ts"

/** More numbers than a call may have arguments. */
const many = Array.from({ length: 500_000 }, (_, at) => at % 1000)

describe("the highest and the lowest of numbers", () => {
  it("are those of Math.max and Math.min", () => {
    for (const numbers of [[], [3], [2, -1, 5], [1, NaN, 2]]) {
      assert.deepStrictEqual([highest(numbers), lowest(numbers)], [Math.max(...numbers), Math.min(...numbers)])
    }
  })

  it("are found in half a million numbers, wherever data may have so many", { tags: "slow" }, () => {
    assert.throws(() => Math.max(...many), RangeError)
    assert.deepStrictEqual([highest(many), lowest(many)], [999, 0])
    const { left } = normalised({ left: many, right: [1] })
    assert.strictEqual(left[999], 1)
    const ofTasks = { step: 1, time: 0, episodes: 0, returns: many, lengths: [], terminated: [] }
    const { min, max } = validationCurve([ofTasks], 0)
    assert.deepStrictEqual([min, max], [[0], [999]])
    const about = { texts: {}, parents: [], nextText: 0, foundAfter: 0 }
    assert.strictEqual(bestOf({ candidates: many.map((score) => ({ ...about, scores: [score] })) }), 999)
    assert.lengthOf(frontOf(many.map((score) => [score]))[0], 500)
  })
})
