import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { parseSetting } from "../../../../src/command/cli/run/overrides.ts"

describe("parseSetting", () => {
  it.effect("reads underscores in numbers, but not in other words", () =>
    Effect.gen(function* () {
      const valueOf = (text: string) => Effect.map(parseSetting(`key=${text}`), ({ value }) => value)
      assert.strictEqual(yield* valueOf("1_000_000"), 1_000_000)
      assert.strictEqual(yield* valueOf("-1_0.2_5e3"), -10_250)
      for (const word of ["level_1_000", "5_", "1__0", "1_.5"]) assert.strictEqual(yield* valueOf(word), word)
    }),
  )

  it.effect("refuses an endless alias with one short line", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(parseSetting("env=&a {b: *a}"))
      assert.strictEqual(
        message,
        "--set env=&a {b: *a}: the value is not valid YAML: b: expected a value, found an alias of what it is a part of",
      )
      assert.isBelow((yield* Effect.flip(parseSetting(`env=[${"x, ".repeat(5000)}`))).message.length, 250)
    }),
  )
})
