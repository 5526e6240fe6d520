import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { limitedScope } from "../../../src/spread/cluster/limitedScope.ts"

/** Closes a limited scope with a finalizer, by an interruption, and returns what happened in order. */
const closed = (finalizer: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const events: Array<string> = []
    const say = (event: string) => Effect.sync(() => void events.push(event))
    const fiber = yield* Effect.forkChild(
      Effect.scoped(
        Effect.gen(function* () {
          yield* Effect.addFinalizer(() => say("closed around it"))
          const scope = yield* limitedScope("10 seconds", say("late"))
          yield* Scope.addFinalizer(scope, Effect.andThen(finalizer, say("closed")))
          yield* Effect.never
        }),
      ),
    )
    yield* Effect.yieldNow
    const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber))
    yield* TestClock.adjust("20 seconds")
    yield* Fiber.join(interrupting)
    assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
    yield* TestClock.adjust("1 minute")
    return events
  })

describe("a limited scope", () => {
  it.effect("is waited for until it has closed", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* closed(Effect.sleep("5 seconds")), ["closed", "closed around it"])
    }),
  )

  it.effect("holds up the scope around it no longer than its limit, and closes later", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* closed(Effect.sleep("30 seconds")), ["late", "closed around it", "closed"])
      assert.deepStrictEqual(yield* closed(Effect.never), ["late", "closed around it"])
    }),
  )
})
