import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { parseMetrics } from "../../src/run/finishedResult.ts"

const Metrics = Schema.Struct({
  runDir: Schema.String,
  episodes: Schema.Array(Schema.Struct({ feedback: Schema.Unknown })),
})
const feedback = { own_key: { other_key: 1 } }

describe("the text of a metrics.json", () => {
  it.effect("has our keys in camelCase, and those of an env's episodes as the env wrote them", () =>
    Effect.gen(function* () {
      const text = JSON.stringify({ run_dir: "a", episodes: [{ feedback }], later_key: 1 })
      assert.deepStrictEqual(yield* parseMetrics(text, Metrics), { runDir: "a", episodes: [{ feedback }] })
    }),
  )

  it.effect("fails with one line where it is not JSON, or lacks a key", () =>
    Effect.gen(function* () {
      for (const text of ["{", "null", "[]", '{"run_dir": "a"}']) {
        const { message } = yield* Effect.flip(parseMetrics(text, Metrics))
        assert.match(message, /^[^\n]+$/)
      }
    }),
  )
})
