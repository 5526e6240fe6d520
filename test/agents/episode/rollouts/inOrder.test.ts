import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { inOrder } from "../../../../src/agents/episode/rollouts/inOrder.ts"

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

describe("many at a time, emitted in order", () => {
  it.effect.prop(
    "tells all, in order, one after another, whatever is done first",
    [Schema.Array(between(0, 20)), between(1, 8), between(0, 5), Schema.Boolean],
    ([delays, concurrency, ahead, slowly]) =>
      Effect.gen(function* () {
        const emitted: Array<number> = []
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
          emit: (result, index) =>
            Effect.gen(function* () {
              assert.isFalse(telling)
              telling = true
              if (slowly) yield* Effect.sleep(3)
              telling = false
              assert.strictEqual(result, index)
              emitted.push(result)
            }),
        }).pipe(Effect.forkChild)
        yield* TestClock.adjust(30 * delays.length)
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(emitted, [...delays.keys()])
        assert.isAtMost(mostRunning, concurrency)
      }),
  )

  it.effect("works on as many as allowed", () =>
    Effect.gen(function* () {
      let running = 0
      const fiber = yield* inOrder(counted(100).items, {
        concurrency: 7,
        work: () =>
          Effect.andThen(
            Effect.sync(() => running++),
            Effect.never,
          ),
        emit: () => Effect.void,
      }).pipe(Effect.forkChild)
      yield* TestClock.adjust(1)
      assert.strictEqual(running, 7)
      yield* Fiber.interrupt(fiber)
    }),
  )

  it.effect("waits behind a slow item, with a limited number of results", () =>
    Effect.gen(function* () {
      const slow = yield* Deferred.make<void>()
      const { about, items } = counted(1000)
      const emitted: Array<number> = []
      const fiber = yield* inOrder(items, {
        concurrency: 3,
        ahead: 10,
        work: (item) => Effect.as(item === 5 ? Deferred.await(slow) : Effect.void, item),
        emit: (result) => Effect.sync(() => void emitted.push(result)),
      }).pipe(Effect.forkChild)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(emitted, [0, 1, 2, 3, 4])
      assert.strictEqual(about.taken, 5 + 3 + 10)
      yield* Deferred.succeed(slow, undefined)
      yield* Fiber.join(fiber)
      assert.strictEqual(emitted.length, 1000)
    }),
  )

  it.effect("stops everything at the first failure of `work` or `emit`", () =>
    Effect.gen(function* () {
      let interrupted = 0
      const emitted: Array<number> = []
      const work = (item: number) =>
        item === 2
          ? Effect.fail("work")
          : item === 3
            ? Effect.onInterrupt(Effect.never, () => Effect.sync(() => void interrupted++))
            : Effect.succeed(item)
      const emit = (result: number) => Effect.sync(() => void emitted.push(result))
      // The third one is begun before the second fails.
      const failed = yield* Effect.exit(
        inOrder([3, 0, 2, 1], { concurrency: 4, work: (item) => Effect.andThen(Effect.yieldNow, work(item)), emit }),
      )
      assert.deepStrictEqual(failed, Exit.fail("work"))
      assert.strictEqual(interrupted, 1)
      assert.deepStrictEqual(emitted, [])
      const unemitted = yield* Effect.exit(
        inOrder(counted(10).items, { concurrency: 2, work: Effect.succeed, emit: (_, index) => Effect.fail(index) }),
      )
      assert.deepStrictEqual(unemitted, Exit.fail(0))
    }),
  )

  it.effect("takes a whole number of workers", () =>
    Effect.gen(function* () {
      for (const concurrency of [0, 1.5, Number.NaN, Infinity]) {
        const exit = yield* Effect.exit(inOrder([1], { concurrency, work: Effect.succeed, emit: () => Effect.void }))
        assert.include(String(exit), `found ${concurrency}`)
      }
    }),
  )
})
