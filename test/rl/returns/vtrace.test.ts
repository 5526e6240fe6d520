import { assert, describe, it } from "vitest"
import { vtrace, type VtraceInputs } from "../../../src/rl/returns/vtrace.ts"

/** Two steps, γ = ½. Ratios of policies: ½, then 4. */
const two = (changes: Partial<VtraceInputs<Float64Array>> = {}): VtraceInputs<Float64Array> => ({
  rewards: Float64Array.of(1, 2),
  values: Float64Array.of(4, 8),
  lastValues: Float64Array.of(16),
  terminated: new Uint8Array(2),
  logRatios: Float64Array.of(Math.log(0.5), Math.log(4)),
  gamma: 0.5,
  ...changes,
})

const close = (actual: ArrayLike<number>, expected: ReadonlyArray<number>): void => {
  assert.lengthOf(actual, expected.length)
  for (const [index, number] of expected.entries()) assert.approximately(actual[index], number, 1e-12)
}

describe("vtrace", () => {
  // δ_0 = 1 + 4 − 4 = 1, δ_1 = 2 + 8 − 8 = 2.
  it.each([
    ["bounds of 1", {}, { targets: [4 + 0.5 + 0.25 * 2, 10], advantages: [0.5 * (1 + 5 - 4), 2] }],
    ["no bounds", { rhoBar: 9, cBar: 9 }, { targets: [4 + 0.5 + 0.25 * 8, 16], advantages: [0.5 * (1 + 8 - 4), 8] }],
    ["a tight trace", { cBar: 0.25 }, { targets: [4 + 0.5 + 0.125 * 2, 10], advantages: [1, 2] }],
    ["λ = 0", { lambda: 0 }, { targets: [4.5, 10], advantages: [1, 2] }],
    ["terminated", { terminated: Uint8Array.of(1, 0) }, { targets: [4 - 1.5, 10], advantages: [-1.5, 2] }],
    [
      "truncated",
      { truncated: Uint8Array.of(1, 0), truncatedValues: Float64Array.of(20, 0) },
      { targets: [4 + 3.5, 10], advantages: [3.5, 2] },
    ],
    ["clipped", { clip: true }, { targets: [4 + 0.5 + 0.25 * 1, 9], advantages: [0.5 * (1 + 4.5 - 4), 1] }],
  ] as const)("%s", (_, changes, expected) => {
    const { targets, advantages } = vtrace(two(changes))
    close(targets, [...expected.targets])
    close(advantages, [...expected.advantages])
  })

  it("clips even a ratio that overflows", () => {
    const { targets } = vtrace(two({ logRatios: Float64Array.of(1000, -1000) }))
    close(targets, [5, 8])
  })

  it("takes ratios without bounds", () => {
    assert.deepEqual(vtrace(two({ rhoBar: Infinity, cBar: Infinity })), vtrace(two({ rhoBar: 9, cBar: 9 })))
  })

  it.each([
    [{ rhoBar: NaN }, "rhoBar: expected a number from 0 on, found NaN"],
    [{ cBar: NaN }, "cBar: expected a number from 0 on, found NaN"],
    [{ cBar: -1 }, "cBar: expected a number from 0 on, found -1"],
  ])("refuses %o, which would make the results wrong", (changes, expected) => {
    assert.throws(() => vtrace(two(changes)), RangeError, expected)
  })

  it("rejects arrays whose lengths do not fit", () => {
    assert.throws(
      () => vtrace(two({ logRatios: new Float64Array(1) })),
      RangeError,
      "logRatios: expected 2 rows, found 1",
    )
  })
})
