import { assert, describe, it } from "vitest"
import { gae, type GaeInputs } from "../../../src/rl/returns/gae.ts"

/** One env, three steps; δ is r + ½ V' − V with γ = ½. */
const three = (changes: Partial<GaeInputs<Float64Array>> = {}): GaeInputs<Float64Array> => ({
  rewards: Float64Array.of(1, 2, 3),
  values: Float64Array.of(4, 8, 16),
  lastValues: Float64Array.of(32),
  terminated: new Uint8Array(3),
  gamma: 0.5,
  lambda: 0.5,
  ...changes,
})

describe("gae", () => {
  it.each([
    ["with nothing ending", {}, [1.6875, 2.75, 3]],
    ["λ = 0: one-step errors", { lambda: 0 }, [1, 2, 3]],
    ["λ = 1", { lambda: 1 }, [1 + 0.5 * 3.5, 2 + 0.5 * 3, 3]],
    ["γ = 0", { gamma: 0 }, [-3, -6, -13]],
    ["terminated in the middle", { terminated: Uint8Array.of(0, 1, 0) }, [1 + 0.25 * -6, -6, 3]],
    [
      "terminated at the end",
      { terminated: Uint8Array.of(0, 0, 1) },
      [1 + 0.25 * (2 + 0.25 * -13), 2 + 0.25 * -13, -13],
    ],
    [
      "truncated: from the value of the final observation",
      { truncated: Uint8Array.of(0, 1, 0), truncatedValues: Float64Array.of(0, 20, 0) },
      [1 + 0.25 * 4, 4, 3],
    ],
    [
      "truncated in the last row",
      { truncated: Uint8Array.of(0, 0, 1), truncatedValues: Float64Array.of(0, 0, 20) },
      [1 + 0.25 * (2 + 0.25 * -3), 2 + 0.25 * -3, -3],
    ],
    ["truncated with no such value: terminated", { truncated: Uint8Array.of(0, 1, 0) }, [1 + 0.25 * -6, -6, 3]],
    [
      "terminated and truncated at once: terminated",
      {
        terminated: Uint8Array.of(0, 1, 0),
        truncated: Uint8Array.of(0, 1, 0),
        truncatedValues: Float64Array.of(0, 20, 0),
      },
      [1 + 0.25 * -6, -6, 3],
    ],
    ["rewards clipped", { clip: true }, [1 + 0.25 * (1 + 0.25 * 1), 1 + 0.25 * 1, 1]],
  ] as const)("%s", (_, changes, expected) => {
    assert.deepEqual([...gae(three(changes))], [...expected])
  })

  it("keeps envs apart: index t · N + n", () => {
    const one = gae(three())
    const two = gae(three({ rewards: Float64Array.of(-1, 0, 1) }))
    const both = gae({
      ...three(),
      rewards: Float64Array.of(1, -1, 2, 0, 3, 1),
      values: Float64Array.of(4, 4, 8, 8, 16, 16),
      lastValues: Float64Array.of(32, 32),
      terminated: new Uint8Array(6),
    })
    assert.deepEqual([...both], [one[0], two[0], one[1], two[1], one[2], two[2]])
  })

  it("writes advantages and targets to given arrays, and returns the former", () => {
    const out = new Float64Array(3)
    const targets = new Float64Array(3)
    assert.strictEqual(gae(three({ out, targets })), out)
    assert.deepEqual([...out], [...gae(three())])
    assert.deepEqual(
      [...targets],
      [...out].map((advantage, t) => advantage + three().values[t]),
    )
  })

  it("returns an array of the rewards' kind, and does not change its inputs", () => {
    const inputs = three({ clip: true })
    assert.instanceOf(gae(inputs), Float64Array)
    assert.deepEqual(inputs, three({ clip: true }))
    const [rewards, values, lastValues] = [Float32Array.of(1, 2), Float32Array.of(3, 4), Float32Array.of(5)]
    const terminated = new Uint8Array(2)
    assert.instanceOf(gae({ rewards, values, lastValues, terminated, gamma: 1, lambda: 1 }), Float32Array)
  })

  it("returns empty arrays for no steps", () => {
    const none = new Float32Array(0)
    const lastValues = new Float32Array(7)
    assert.lengthOf(
      gae({ rewards: none, values: none, lastValues, terminated: new Uint8Array(0), gamma: 1, lambda: 1 }),
      0,
    )
  })

  it.each([
    ["values: expected 3 rows, found 2", { values: new Float64Array(2) }],
    ["terminated: expected 3 rows, found 4", { terminated: new Uint8Array(4) }],
    ["truncated: expected 3 rows, found 0", { truncated: new Uint8Array(0) }],
    ["truncatedValues: expected 3 rows, found 1", { truncatedValues: new Float64Array(1) }],
    ["out: expected 3 rows, found 6", { out: new Float64Array(6) }],
    ["targets: expected 3 rows, found 6", { targets: new Float64Array(6) }],
    [
      "rewards: expected a multiple of 2 envs (the length of lastValues), found 3 rows",
      { lastValues: new Float64Array(2) },
    ],
    [
      "rewards: expected a multiple of 0 envs (the length of lastValues), found 3 rows",
      { lastValues: new Float64Array(0) },
    ],
  ] as const)("refuses shapes that don't fit: %s", (message, changes) => {
    assert.throws(() => gae(three(changes)), RangeError, message)
  })

  it("rejects output arrays that it still has to read", () => {
    const values = new Float64Array(3)
    assert.throws(() => gae(three({ values, out: values })), RangeError, "out: expected another array than values")
    assert.throws(
      () => gae(three({ values, targets: values })),
      RangeError,
      "targets: expected another array than values",
    )
    const out = new Float64Array(3)
    assert.throws(() => gae(three({ out, targets: out })), RangeError, "targets: expected another array than out")
    const rewards = Float64Array.of(1, 2, 3)
    assert.deepEqual([...gae(three({ rewards, out: rewards }))], [...gae(three())])
  })
})
