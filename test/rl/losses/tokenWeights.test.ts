import { assert, describe, it } from "@effect/vitest"
import * as Losses from "../../../src/rl/losses/Losses.ts"

const rounded = (weights: ReadonlyArray<Float32Array>) => weights.map((row) => Array.from(row))
const f32 = Math.fround

describe("tokenWeights", () => {
  // The first sequence has a prompt token and, between two answers, the result of a tool; the last one counts nothing.
  const masks = [Uint8Array.of(0, 1, 0, 1), Uint8Array.of(1), Uint8Array.of(0, 0)]
  const cases = [
    [{ type: "token_mean" }, 1 / 3, 1 / 3],
    [{ type: "sequence_mean" }, 1 / 4, 1 / 2],
    [{ type: "sequence_sum" }, 1 / 2, 1 / 2],
    [{ type: "constant", tokens: 16 }, 1 / 32, 1 / 32],
  ] as const

  for (const [normalisation, first, second] of cases)
    it(`${normalisation.type}: zero outside of the mask; sequences without a token do not count`, () => {
      const weights = rounded(Losses.tokenWeights({ masks, normalisation }))
      assert.deepStrictEqual(weights, [[0, f32(first), 0, f32(first)], [f32(second)], [0, 0]])
    })

  it("group_mean: each group weighs the same, and a sequence without a number is a group of its own", () => {
    const normalisation = { type: "group_mean" } as const
    const four = [...masks, Uint8Array.of(1)]
    assert.deepStrictEqual(rounded(Losses.tokenWeights({ masks: four, groups: [4, 4, 1, 2], normalisation })), [
      [0, f32(1 / 6), 0, f32(1 / 6)],
      [f32(1 / 6)],
      [0, 0],
      [f32(1 / 2)],
    ])
    assert.deepStrictEqual(rounded(Losses.tokenWeights({ masks, normalisation }))[0][1], f32(1 / 4))
  })

  it("has only zeros where nothing counts", () => {
    const normalisation = { type: "token_mean" } as const
    assert.deepStrictEqual(rounded(Losses.tokenWeights({ masks: [Uint8Array.of(0)], normalisation })), [[0]])
  })

  it("refuses the totals of another step", () => {
    const normalisation = { type: "token_mean" } as const
    const totals = { sequences: 1, tokens: 3, groups: new Map([[0, 3]]) }
    assert.throws(
      () => Losses.weightOfTokens({ tokens: 4, group: 0, totals, normalisation }),
      RangeError,
      /^totals: expected those of a step with this sequence of 4 tokens, found 1 sequences and 3 tokens, 3 of them/,
    )
  })
})
