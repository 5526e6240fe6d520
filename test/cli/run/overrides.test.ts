import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { parseSetting } from "../../../src/cli/run/overrides.ts"

describe("parseSetting", () => {
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
