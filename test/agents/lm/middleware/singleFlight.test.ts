import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { singleFlight } from "../../../../src/agents/lm/middleware/singleFlight.ts"

/** Makes an effect that takes a second and gives its number; the numbers in `failing` fail. */
const counting = (failing: ReadonlyArray<number> = []) => {
  const state = { begun: 0 }
  const slow = Effect.gen(function* () {
    const nth = ++state.begun
    yield* Effect.sleep("1 second")
    return failing.includes(nth) ? yield* Effect.fail(`no ${nth}`) : nth
  })
  return { state, slow }
}

const fork = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })

describe("singleFlight", () => {
  it.effect(
    "runs once what is asked for by several at a time, and anew what is asked for later or by another name",
    () =>
      Effect.gen(function* () {
        const { slow } = counting([3])
        const once = singleFlight<number, string>()
        const asked = ["a", "a", "b", "a"]
        const fibers = yield* Effect.forEach(asked, (key) => fork(once(key, slow)))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* Effect.forEach(fibers, Fiber.join), [1, 1, 2, 1])
        const later = yield* Effect.forEach(["a", "a"], (key) => fork(once(key, slow)))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* Effect.forEach(later, Fiber.await), [Exit.fail("no 3"), Exit.fail("no 3")])
      }),
  )

  it.effect("runs the next caller's effect if the first is interrupted; an interrupted waiter changes nothing", () =>
    Effect.gen(function* () {
      const { state, slow } = counting()
      const once = singleFlight<number, string>()
      const [first, second, third, fourth] = yield* Effect.forEach([1, 2, 3, 4], () => fork(once("a", slow)))
      yield* Fiber.interrupt(second)
      assert.strictEqual(state.begun, 1)
      yield* Fiber.interrupt(first)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Effect.forEach([third, fourth], Fiber.join), [2, 2])
      assert.strictEqual(state.begun, 2)
    }),
  )
})
