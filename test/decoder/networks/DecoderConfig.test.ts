import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { decodeConfig } from "../../../src/decoder/networks/Decoder.ts"
import { config } from "./fixture.ts"

describe("DecoderConfig", () => {
  it.effect("names every wrong key, and what was expected", () =>
    Effect.gen(function* () {
      const refused = (changes: object) =>
        Effect.map(Effect.flip(decodeConfig({ ...config, ...changes }, "a.json")), String)
      const llama3 = {
        _tag: "llama3",
        factor: 8,
        lowFrequencyFactor: 4,
        highFrequencyFactor: 1,
        originalMaxPositions: 64,
      }
      const message = yield* refused({ headDim: 3, vocabSize: 0, rope: { theta: 1e4, scaling: llama3 } })
      assert.include(message, "vocab_size: expected a value between 1 and 16777216 (the weights are a matrix), found 0")
      assert.include(
        yield* refused({ headDim: 3 }),
        "head_dim: expected an even number, as numbers rotate in pairs, found 3",
      )
      assert.include(
        yield* refused({ rope: { theta: 1e4, scaling: llama3 } }),
        "rope.scaling.high_frequency_factor: expected more than the factor of low frequencies, 4, found 1",
      )
      assert.include(
        yield* refused({ vocabSize: 2 ** 24, hiddenSize: 100 }),
        "hidden_size: expected at most 64, as a matrix of 16777216 rows has at most 2^30 weights, found 100",
      )
      assert.include(yield* refused({ hidden: 3 }), 'unknown key "hidden"; did you mean "')
    }),
  )
})
