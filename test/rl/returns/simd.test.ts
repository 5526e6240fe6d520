import { assert, describe, it } from "vitest"
import { simd } from "../../../src/rl/returns/simd.ts"
import { scalar32, sweep32 } from "../../../src/rl/returns/gae.ts"
import type { SweepColumns } from "../../../src/rl/returns/inputs.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const columns = (steps: number, envs: number, truncation: boolean): SweepColumns<Float32Array> => {
  const random = stream(1, "sweep", steps, envs)
  const rows = steps * envs
  const floats = (length: number): Float32Array => Float32Array.from({ length }, () => random.normal())
  const flags = (): Uint8Array => Uint8Array.from({ length: rows }, () => Number(random.uniform() < 0.1))
  return {
    rewards: floats(rows),
    values: floats(rows),
    lastValues: floats(envs),
    terminated: flags(),
    truncated: truncation ? flags() : undefined,
    truncatedValues: truncation ? floats(rows) : undefined,
    gamma: 0.99,
    decay: 0.94,
    advantages: new Float32Array(rows),
    targets: new Float32Array(rows),
  }
}

/** Row by row: the difference of two long arrays takes minutes to print. */
const sameBits = (actual: SweepColumns<Float32Array>, expected: SweepColumns<Float32Array>): void => {
  for (const name of ["advantages", "targets"] as const) {
    const [ours, theirs] = [actual[name] ?? [], expected[name] ?? []]
    assert.strictEqual(ours.length, theirs.length)
    const row = theirs.findIndex((value, row) => !Object.is(ours[row], value))
    if (row >= 0) assert.fail(`${name}, row ${row}: found ${ours[row]}, expected ${theirs[row]}`)
  }
}

describe("the sweep in WebAssembly", () => {
  it("is available in Node", () => {
    assert.isDefined(simd)
  })

  // Less than a turn, many turns, a last turn of another size, rows longer than a turn, no multiple of four.
  it.each([
    [1, 4],
    [7, 5],
    [128, 64],
    [130, 1024],
    [4001, 7],
    [3, 20_001],
  ])("has the bits of the scalar one, over %i steps of %i envs", (steps, envs) => {
    for (const truncation of [false, true]) {
      const vector = columns(steps, envs, truncation)
      const scalar = columns(steps, envs, truncation)
      sweep32(vector)
      scalar32(scalar)
      sameBits(vector, scalar)
    }
  })

  it("has the same bits for numbers of envs that are not multiples of four", () => {
    const odd = [0, -0, 1, -1, NaN, Infinity, 1e38, 1e-45]
    const random = stream(2, "sweep")
    const numbers = (length: number): Float32Array =>
      Float32Array.from({ length }, () => odd[random.integer(odd.length)])
    const zeros = (length: number): Float32Array => Float32Array.from({ length }, () => odd[random.integer(2)])
    for (const draw of [numbers, zeros]) {
      for (const truncation of [false, true]) {
        const scalar = columns(50, 12, truncation)
        scalar.rewards.set(draw(600))
        scalar.values.set(draw(600))
        scalar.lastValues.set(draw(12))
        scalar.truncatedValues?.set(draw(600))
        const vector = { ...scalar, advantages: new Float32Array(600), targets: new Float32Array(600) }
        sweep32(vector)
        scalar32(scalar)
        sameBits(vector, scalar)
      }
    }
  })

  it("does not depend on earlier calls", () => {
    const first = columns(30, 16, true)
    sweep32(first)
    sweep32(columns(300, 100, true))
    const again = columns(30, 16, true)
    sweep32(again)
    sameBits(again, first)
    // Truncation whose values are not known, after one whose values were.
    const unknown = { ...columns(30, 16, true), truncatedValues: undefined }
    const expected = { ...columns(30, 16, true), truncatedValues: undefined }
    sweep32(unknown)
    scalar32(expected)
    sameBits(unknown, expected)
  })
})
