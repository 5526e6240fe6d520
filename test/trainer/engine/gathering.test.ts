import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { makeGathering } from "../../../src/trainer/engine/gathering.ts"

describe("a gathering", () => {
  it.effect("lets runs begin when as many wait as can be trained", () =>
    Effect.gen(function* () {
      const gathering = makeGathering()
      let ready = 4
      gathering.follow(() => ready)
      const begun: Array<string> = []
      const enter = (run: string) =>
        Effect.forkChild(
          Effect.andThen(
            gathering.enter,
            Effect.sync(() => begun.push(run)),
          ),
          { startImmediately: true },
        )
      const begins = [yield* enter("a"), yield* enter("b")]
      gathering.look()
      yield* Effect.yieldNow
      assert.deepStrictEqual(begun, [])
      // One run is trained, so three are left.
      ready = 3
      gathering.look()
      yield* Effect.yieldNow
      assert.deepStrictEqual(begun, [])
      begins.push(yield* enter("c"))
      yield* Effect.forEach(begins, Fiber.join)
      assert.deepStrictEqual(begun, ["a", "b", "c"])
    }),
  )

  it.effect("lets all begin that wait, when the trainer has nothing to train", () =>
    Effect.gen(function* () {
      const gathering = makeGathering()
      gathering.follow(() => 8)
      const entered = yield* Effect.forkChild(gathering.enter, { startImmediately: true })
      gathering.open()
      yield* Fiber.join(entered)
    }),
  )

  it.effect("forgets a run that leaves", () =>
    Effect.gen(function* () {
      const gathering = makeGathering()
      gathering.follow(() => 2)
      yield* Fiber.interrupt(yield* Effect.forkChild(gathering.enter, { startImmediately: true }))
      const other = yield* Effect.forkChild(gathering.enter, { startImmediately: true })
      gathering.look()
      yield* Effect.yieldNow
      assert.isUndefined(other.pollUnsafe())
      yield* Fiber.interrupt(other)
    }),
  )

  it.effect("makes nobody wait before it knows what is trained", () => makeGathering().enter)
})
