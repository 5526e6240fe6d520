import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { makeTokenRate } from "../../src/trainer/tokenRate.ts"

describe("the tokens a second", () => {
  it.effect("are those since the last metrics, at least a second ago", () =>
    Effect.gen(function* () {
      const tokenRate = yield* makeTokenRate({ trained: 1000, generated: 0 })
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(yield* tokenRate({ trained: 2000, generated: 10 }), {})
      yield* TestClock.adjust("1001 millis")
      assert.deepStrictEqual(yield* tokenRate({ trained: 5000, generated: 500 }), {
        "trainer/tokens_per_second": 2000,
        "trainer/generated_tokens_per_second": 250,
      })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* tokenRate({ trained: 5100, generated: 500 }), {
        "trainer/tokens_per_second": 100,
        "trainer/generated_tokens_per_second": 0,
      })
    }),
  )

  it.effect("leave out what another process generates", () =>
    Effect.gen(function* () {
      const tokenRate = yield* makeTokenRate({ trained: 0, generated: 0 })
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* tokenRate({ trained: 100, generated: 0 }), { "trainer/tokens_per_second": 50 })
    }),
  )
})
