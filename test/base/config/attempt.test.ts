import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { attempt } from "../../../src/base/config/attempt.ts"

class Expected extends Error {}

describe("attempt", () => {
  it.effect("returns what the code returns", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* attempt(() => 3, Expected), 3)
    }),
  )

  it.effect("fails with an error of a named class", () =>
    Effect.gen(function* () {
      const thrown = new Expected("no")
      const error = yield* Effect.flip(
        attempt(
          () => {
            throw thrown
          },
          TypeError,
          Expected,
        ),
      )
      assert.strictEqual(error, thrown)
    }),
  )

  it.effect("dies of any other error", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(attempt((): number => JSON.parse("{"), Expected))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
    }),
  )
})
