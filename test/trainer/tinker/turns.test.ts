import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { makeTurns } from "../../../src/trainer/tinker/waiting/turns.ts"

/** Work of clients whose turns end one by one. */
const working = () => {
  const turns = makeTurns()
  const begun: Array<string> = []
  const ends = new Map<string, Deferred.Deferred<void>>()
  const begin = (client: string, name: string) => {
    const end = Deferred.makeUnsafe<void>()
    ends.set(name, end)
    const work = Effect.andThen(
      Effect.sync(() => void begun.push(name)),
      Deferred.await(end),
    )
    return Effect.forkChild(turns.inTurn(client, work), { startImmediately: true })
  }
  const end = (name: string) => {
    const one = ends.get(name)
    if (one !== undefined) Deferred.doneUnsafe(one, Effect.void)
    return Effect.yieldNow
  }
  return { turns, begun, begin, end }
}

describe("the turns of clients", () => {
  it.effect("come to each client that waits, however much work another has", () =>
    Effect.gen(function* () {
      const { turns, begun, begin, end } = working()
      for (const name of ["a1", "a2", "a3", "a4"]) yield* begin("a", name)
      for (const name of ["b1", "b2"]) yield* begin("b", name)
      assert.deepStrictEqual([begun, turns.waiting()], [["a1"], 5])
      yield* begin("c", "c1")
      for (let at = 0; at < 7; at++) yield* end(begun[at])
      assert.deepStrictEqual(begun, ["a1", "b1", "c1", "a2", "b2", "a3", "a4"])
      assert.strictEqual(turns.waiting(), 0)
    }),
  )

  it.effect("are not lost with work that is interrupted, whether it waits or has begun", () =>
    Effect.gen(function* () {
      const { turns, begun, begin, end } = working()
      const first = yield* begin("a", "a1")
      const second = yield* begin("b", "b1")
      yield* begin("c", "c1")
      yield* Fiber.interrupt(second)
      assert.strictEqual(turns.waiting(), 1)
      yield* Fiber.interrupt(first)
      yield* Effect.yieldNow
      assert.deepStrictEqual(begun, ["a1", "c1"])
      yield* end("c1")
      yield* begin("a", "a2")
      assert.deepStrictEqual(begun, ["a1", "c1", "a2"])
    }),
  )
})
