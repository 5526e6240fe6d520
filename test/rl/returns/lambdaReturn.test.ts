import { assert, describe, it } from "vitest"
import { gae } from "../../../src/rl/returns/gae.ts"
import * as Returns from "../../../src/rl/returns/Returns.ts"
import { lambdaReturn, type LambdaInputs } from "../../../src/rl/returns/lambdaReturn.ts"

const three = (changes: Partial<LambdaInputs<Float64Array>> = {}): LambdaInputs<Float64Array> => ({
  rewards: Float64Array.of(1, 2, 3),
  values: Float64Array.of(4, 8, 16),
  lastValues: Float64Array.of(32),
  terminated: new Uint8Array(3),
  gamma: 0.5,
  lambda: 0.5,
  ...changes,
})

describe("lambdaReturn", () => {
  it.each([
    ["λ = ½", {}, [1 + 0.5 * (0.5 * 8 + 0.5 * 10.75), 2 + 0.5 * (0.5 * 16 + 0.5 * 19), 19]],
    ["λ = 0: one step and a value", { lambda: 0 }, [1 + 4, 2 + 8, 3 + 16]],
    ["λ = 1: all steps and the last value", { lambda: 1 }, [1 + 0.5 * (2 + 0.5 * 19), 2 + 0.5 * 19, 19]],
    ["terminated in the middle", { terminated: Uint8Array.of(0, 1, 0) }, [1 + 0.5 * (0.5 * 8 + 0.5 * 2), 2, 19]],
    [
      "truncated in the middle",
      { truncated: Uint8Array.of(0, 1, 0), truncatedValues: Float64Array.of(0, 20, 0) },
      [1 + 0.5 * (0.5 * 8 + 0.5 * 12), 12, 19],
    ],
    ["rewards clipped", { clip: true, lambda: 0 }, [1 + 4, 1 + 8, 1 + 16]],
  ] as const)("%s", (_, changes, expected) => {
    assert.deepEqual([...lambdaReturn(three(changes))], [...expected])
  })

  it.each([
    ["lambda", undefined],
    ["lambda", NaN],
    ["gamma", undefined],
    ["gamma", Infinity],
  ] as const)("refuses %s: %s, which would make every result NaN", (key, value) => {
    // A program without types can leave it out.
    const inputs = Object.assign(three(), { [key]: value })
    const expected = `${key}: expected a finite number, found ${value}`
    for (const returns of [lambdaReturn, gae, Returns.members.GAE, Returns.members.LAMBDA])
      assert.throws(() => returns(inputs), RangeError, expected)
  })

  it("returns rlib's last row with tail 'rlib', and the rows before that follow from it", () => {
    assert.deepEqual(
      [...lambdaReturn(three({ tail: "rlib", lambda: 1 }))],
      [1 + 0.5 * (2 + 0.5 * 32), 2 + 0.5 * 32, 32],
    )
    assert.deepEqual(
      [...lambdaReturn(three({ tail: "rlib", terminated: Uint8Array.of(0, 0, 1), lambda: 1 }))],
      [2, 2, 0],
    )
  })

  it("writes to the array out", () => {
    const out = new Float64Array(3)
    assert.strictEqual(lambdaReturn(three({ out })), out)
    assert.deepEqual(out, lambdaReturn(three()))
  })

  it("rejects arrays whose lengths do not fit", () => {
    assert.throws(
      () => lambdaReturn(three({ values: new Float64Array(4) })),
      RangeError,
      "values: expected 3 rows, found 4",
    )
    const values = new Float64Array(3)
    assert.throws(
      () => lambdaReturn(three({ values, out: values })),
      RangeError,
      "out: expected another array than values",
    )
  })
})
