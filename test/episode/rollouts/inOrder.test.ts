import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { inOrder } from "../../../src/episode/rollouts/inOrder.ts"

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** Numbers from 0, and how many of them were taken. */
const counted = (size: number) => {
  const about = { taken: 0 }
  const items = {
    *[Symbol.iterator]() {
      for (; about.taken < size;) yield about.taken++
    },
  }
  return { about, items }
}

describe("many at a time, told in order", () => {
  it.effect.prop(
    "tells all, in order, one after another, whatever is done first",
    [Schema.Array(between(0, 20)), between(1, 8), between(0, 5), Schema.Boolean],
    ([delays, concurrency, ahead, slowly]) =>
      Effect.gen(function* () {
        const told: Array<number> = []
        let running = 0
        let mostRunning = 0
        let telling = false
        const fiber = yield* inOrder(delays, {
          concurrency,
          ahead,
          work: (delay, index) =>
            Effect.gen(function* () {
              mostRunning = Math.max(mostRunning, ++running)
              yield* Effect.sleep(delay)
              running--
              return index
            }),
          tell: (result, index) =>
            Effect.gen(function* () {
              assert.isFalse(telling)
              telling = true
              if (slowly) yield* Effect.sleep(3)
              telling = false
              assert.strictEqual(result, index)
              told.push(result)
            }),
        }).pipe(Effect.forkChild)
        yield* TestClock.adjust(30 * delays.length)
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(told, [...delays.keys()])
        assert.isAtMost(mostRunning, concurrency)
      }),
  )

  it.effect("works on as many as it may", () =>
    Effect.gen(function* () {
      let running = 0
      const fiber = yield* inOrder(counted(100).items, {
        concurrency: 7,
        work: () =>
          Effect.andThen(
            Effect.sync(() => running++),
            Effect.never,
          ),
        tell: () => Effect.void,
      }).pipe(Effect.forkChild)
      yield* TestClock.adjust(1)
      assert.strictEqual(running, 7)
      yield* Fiber.interrupt(fiber)
    }),
  )

  it.effect("waits behind a slow one, with no more results than it may keep", () =>
    Effect.gen(function* () {
      const slow = yield* Deferred.make<void>()
      const { about, items } = counted(1000)
      const told: Array<number> = []
      const fiber = yield* inOrder(items, {
        concurrency: 3,
        ahead: 10,
        work: (item) => Effect.as(item === 5 ? Deferred.await(slow) : Effect.void, item),
        tell: (result) => Effect.sync(() => void told.push(result)),
      }).pipe(Effect.forkChild)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(told, [0, 1, 2, 3, 4])
      assert.strictEqual(about.taken, 5 + 3 + 10)
      yield* Deferred.succeed(slow, undefined)
      yield* Fiber.join(fiber)
      assert.strictEqual(told.length, 1000)
    }),
  )

  it.effect("stops all at the first failure, of the work or of the telling", () =>
    Effect.gen(function* () {
      let interrupted = 0
      const told: Array<number> = []
      const work = (item: number) =>
        item === 2
          ? Effect.fail("work")
          : item === 3
            ? Effect.onInterrupt(Effect.never, () => Effect.sync(() => void interrupted++))
            : Effect.succeed(item)
      const tell = (result: number) => Effect.sync(() => void told.push(result))
      // The third one is begun before the second fails.
      const failed = yield* Effect.exit(
        inOrder([3, 0, 2, 1], { concurrency: 4, work: (item) => Effect.andThen(Effect.yieldNow, work(item)), tell }),
      )
      assert.deepStrictEqual(failed, Exit.fail("work"))
      assert.strictEqual(interrupted, 1)
      assert.deepStrictEqual(told, [])
      const untold = yield* Effect.exit(
        inOrder(counted(10).items, { concurrency: 2, work: Effect.succeed, tell: (_, index) => Effect.fail(index) }),
      )
      assert.deepStrictEqual(untold, Exit.fail(0))
    }),
  )

  it.effect("takes a whole number of workers", () =>
    Effect.gen(function* () {
      for (const concurrency of [0, 1.5, Number.NaN, Infinity]) {
        const exit = yield* Effect.exit(inOrder([1], { concurrency, work: Effect.succeed, tell: () => Effect.void }))
        assert.include(String(exit), `found ${concurrency}`)
      }
    }),
  )
})
