import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { holdLease, whileHeld } from "../../../src/trainer/placement/lease.ts"
import { Store } from "../../../src/trainer/store/Store.ts"

const key = "lease/1"
const deadline = "10 seconds"

describe("work that a lease keeps going", () => {
  it.effect(
    "returns its result while the lease is held, however long it takes",
    () =>
      Effect.gen(function* () {
        const store = yield* Store
        yield* holdLease(store, key)
        const work = Effect.as(Effect.sleep("1 hour"), "done")
        const fiber = yield* Effect.forkChild(whileHeld({ store, key, deadline }, work))
        yield* TestClock.adjust("2 hours")
        assert.strictEqual(yield* Fiber.join(fiber), "done")
      }).pipe(Effect.scoped, Effect.provide(Store.memory())),
    { tags: "slow" },
  )

  it.effect("is interrupted within a second after the lease was given back, and does not begin after that", () =>
    Effect.gen(function* () {
      const store = yield* Store
      const scope = yield* Scope.make()
      yield* Scope.provide(holdLease(store, key), scope)
      let isInterrupted = false
      const work = Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (isInterrupted = true)))
      const fiber = yield* Effect.forkChild(whileHeld({ store, key, deadline }, work))
      yield* TestClock.adjust("1 minute")
      assert.isUndefined(fiber.pollUnsafe())
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("1 second")
      assert.isUndefined(yield* Fiber.join(fiber))
      assert.isTrue(isInterrupted)
      let begins = 0
      yield* whileHeld(
        { store, key, deadline },
        Effect.sync(() => begins++),
      )
      assert.strictEqual(begins, 0)
    }).pipe(Effect.scoped, Effect.provide(Store.memory())),
  )

  it.effect("is interrupted at the deadline if the lease is not renewed any more", () =>
    Effect.gen(function* () {
      const store = yield* Store
      yield* store.set(key, new Uint8Array([49]))
      const fiber = yield* Effect.forkChild(whileHeld({ store, key, deadline }, Effect.never))
      yield* TestClock.adjust("9 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* store.set(key, new Uint8Array([50]))
      yield* TestClock.adjust("9 seconds")
      assert.isUndefined(fiber.pollUnsafe(), "a renewal begins the time again")
      yield* TestClock.adjust("2 seconds")
      assert.isUndefined(yield* Fiber.join(fiber))
    }).pipe(Effect.provide(Store.memory())),
  )
})
