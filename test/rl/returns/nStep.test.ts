import { assert, describe, it } from "vitest"
import { nStep, type NStepInputs } from "../../../src/rl/returns/nStep.ts"

const four = (changes: Partial<NStepInputs<Float64Array>> = {}): NStepInputs<Float64Array> => ({
  rewards: Float64Array.of(1, 2, 3, 4),
  values: Float64Array.of(8, 16, 32, 64),
  lastValues: Float64Array.of(128),
  terminated: new Uint8Array(4),
  gamma: 0.5,
  ...changes,
})

/** The example with which rlib's own test holds on to the lost last reward. */
const rlibs = (tail?: "rlib"): NStepInputs<Float64Array> => ({
  rewards: Float64Array.of(1, 1, 1),
  values: new Float64Array(3),
  lastValues: Float64Array.of(5),
  terminated: Uint8Array.of(0, 1, 0),
  gamma: 0.99,
  ...(tail === undefined ? {} : { tail }),
})

const close = (actual: ArrayLike<number>, expected: ReadonlyArray<number>): void => {
  assert.lengthOf(actual, expected.length)
  for (const [index, number] of expected.entries()) assert.approximately(actual[index], number, 1e-12)
}

describe("nStep", () => {
  it("includes the last reward and discounts the last value", () => {
    close(nStep(rlibs()), [1.99, 1, 5.95])
  })

  it("returns rlib's numbers with tail 'rlib'", () => {
    close(nStep(rlibs("rlib")), [1.99, 1, 5])
    close(nStep({ ...rlibs("rlib"), terminated: Uint8Array.of(0, 1, 1) }), [1.99, 1, 0])
    close(nStep({ ...rlibs("rlib"), horizon: 9 }), [1.99, 1, 5])
  })

  it.each([
    ["no horizon: to the end", {}, [1 + 1 + 0.75 + 0.5 + 8, 2 + 1.5 + 1 + 16, 3 + 2 + 32, 4 + 64]],
    ["one step", { horizon: 1 }, [1 + 8, 2 + 16, 3 + 32, 4 + 64]],
    ["two steps", { horizon: 2 }, [1 + 1 + 8, 2 + 1.5 + 16, 3 + 2 + 32, 4 + 64]],
    ["more steps than there are", { horizon: 9 }, [1 + 1 + 0.75 + 0.5 + 8, 2 + 1.5 + 1 + 16, 3 + 2 + 32, 4 + 64]],
    ["terminated", { terminated: Uint8Array.of(0, 1, 0, 0), horizon: 3 }, [1 + 1, 2, 3 + 2 + 32, 4 + 64]],
    [
      "truncated",
      { truncated: Uint8Array.of(0, 1, 0, 0), truncatedValues: Float64Array.of(0, 40, 0, 0), horizon: 3 },
      [1 + 1 + 10, 2 + 20, 3 + 2 + 32, 4 + 64],
    ],
    [
      "truncated at an unknown value",
      { truncated: Uint8Array.of(0, 1, 0, 0), horizon: 2 },
      [1 + 1, 2, 3 + 2 + 32, 4 + 64],
    ],
    ["rewards clipped", { clip: true, horizon: 1 }, [1 + 8, 1 + 16, 1 + 32, 1 + 64]],
  ] as const)("%s", (_, changes, expected) => {
    close(nStep(four(changes)), [...expected])
  })

  it("writes to the array out", () => {
    for (const horizon of [{}, { horizon: 2 }]) {
      const out = new Float64Array(4)
      assert.strictEqual(nStep(four({ out, ...horizon })), out)
      assert.deepEqual(out, nStep(four(horizon)))
    }
  })

  it.each([0, -1, 1.5, NaN])("refuses a horizon of %d", (horizon) => {
    assert.throws(
      () => nStep(four({ horizon })),
      RangeError,
      `horizon: expected an integer of at least 1, found ${horizon}`,
    )
  })

  it("rejects arrays whose lengths do not fit", () => {
    assert.throws(
      () => nStep(four({ terminated: new Uint8Array(3), horizon: 2 })),
      RangeError,
      "terminated: expected 4 rows",
    )
  })
})
