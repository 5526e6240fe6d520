import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type Attempt, mostAttempts, persistently } from "../../../src/trainer/outside/persistence.ts"

const again = (step: number): Attempt => ({ _tag: "Again", step, reason: `failed at ${step}` })

/** Runs attempts that end one after another as given, and returns the outcome with what was repeated. */
const played = Effect.fnUntraced(function* (attempts: ReadonlyArray<Attempt>) {
  const times: Array<number> = []
  const reasons: Array<string> = []
  let made = 0
  const attempt = Effect.gen(function* () {
    times.push(yield* Clock.currentTimeMillis)
    return attempts[made++]
  })
  const fiber = yield* Effect.forkChild(persistently(attempt, (reason) => Effect.sync(() => void reasons.push(reason))))
  yield* TestClock.adjust("1 hour")
  return { outcome: yield* Fiber.join(fiber), seconds: times.map((millis) => millis / 1000), reasons }
})

describe("work that is repeated", () => {
  it.effect("waits longer and longer, and gives up if it does not get further", () =>
    Effect.gen(function* () {
      const { outcome, seconds, reasons } = yield* played(Array.from({ length: mostAttempts + 1 }, () => again(3)))
      assert.deepStrictEqual(outcome, { _tag: "Failed", reason: "failed at 3" })
      assert.deepStrictEqual(seconds, [0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 61.5])
      assert.lengthOf(reasons, mostAttempts - 1)
    }),
  )

  it.effect("begins the count again after progress", () =>
    Effect.gen(function* () {
      const steps = [-1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1]
      const { outcome, seconds } = yield* played([...steps.map(again), { _tag: "Complete" }])
      assert.deepStrictEqual(outcome, { _tag: "Complete" })
      assert.strictEqual(seconds[9] - seconds[8], 0.5)
    }),
  )
})
