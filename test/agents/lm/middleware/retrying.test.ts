import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { delayOf, RetrySink, retrying, type Retry } from "../../../../src/agents/lm/middleware/retrying.ts"
import { answering, failure, request } from "../support.ts"

const config = { maxRetries: 5, startingDelay: 1, backoffFactor: 2, maxDelay: 10, jitter: 0 }

/** The times of the calls in seconds, and the result. */
const timesOf = (failures: number, by: Parameters<typeof failure>, how = config, text = "?") =>
  Effect.gen(function* () {
    const times: Array<number> = []
    const { lm } = answering((nth) =>
      Effect.gen(function* () {
        times.push(yield* Clock.currentTimeMillis)
        if (nth < failures) return yield* failure(...by)
        return { ...(yield* answering(() => "yes").lm.complete(request(text))), attempts: 1 }
      }),
    )
    const fiber = yield* Effect.forkChild(Effect.result(retrying(how)(lm).complete(request(text))))
    yield* TestClock.adjust("1 hour")
    const result = yield* Fiber.join(fiber)
    return { times: times.map((time) => (time - times[0]) / 1000), result }
  })

describe("retrying", () => {
  it.effect("waits 1, 2, 4, 8 and 10 seconds, and reports the last failure in the end", () =>
    Effect.gen(function* () {
      const { times, result } = yield* timesOf(Infinity, ["unavailable", { message: "m: 503 Service Unavailable" }])
      assert.deepStrictEqual(times, [0, 1, 3, 7, 15, 25])
      assert(result._tag === "Failure")
      assert.deepStrictEqual(
        [result.failure.reason, result.failure.attempts, result.failure.message],
        ["exhausted", 6, "m: no answer after 6 attempts; last failure: 503 Service Unavailable"],
      )
    }),
  )

  it.effect("counts the attempts of a call that succeeds", () =>
    Effect.gen(function* () {
      const { times, result } = yield* timesOf(2, ["malformed"])
      assert.deepStrictEqual(times, [0, 1, 3])
      assert(result._tag === "Success")
      assert.strictEqual(result.success.attempts, 3)
    }),
  )

  it.effect("never retries a permanent failure", () =>
    Effect.gen(function* () {
      for (const reason of ["unauthorised", "rejected", "budget", "cache", "exhausted"] as const) {
        const { times, result } = yield* timesOf(Infinity, [reason])
        assert.strictEqual(times.length, 1, reason)
        assert(result._tag === "Failure")
        assert.deepStrictEqual(result.failure, failure(reason))
      }
      const { times, result } = yield* timesOf(Infinity, ["unavailable"], { ...config, maxRetries: 0 })
      assert.strictEqual(times.length, 1)
      assert(result._tag === "Failure")
      assert.strictEqual(result.failure.message, "m: no answer after 1 attempt; last failure: unavailable")
    }),
  )

  it.effect("counts the attempts before a permanent failure", () =>
    Effect.gen(function* () {
      const { lm } = answering((nth) => Effect.fail(failure(nth === 0 ? "unavailable" : "rejected")))
      const fiber = yield* Effect.forkChild(Effect.flip(retrying(config)(lm).complete(request("?"))))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* Fiber.join(fiber), failure("rejected", { attempts: 2 }))
    }),
  )

  it.effect("waits as long as the server asks for, up to a limit", () =>
    Effect.gen(function* () {
      const soon = yield* timesOf(1, ["unavailable", { retryAfter: 25 }])
      assert.deepStrictEqual(soon.times, [0, 25])
      const late = yield* timesOf(1, ["unavailable", { retryAfter: 86_400 }])
      assert.deepStrictEqual(late.times, [0, 60])
      const patient = yield* timesOf(1, ["unavailable", { retryAfter: 86_400 }], { ...config, maxDelay: 90 })
      assert.deepStrictEqual(patient.times, [0, 90])
      const sooner = yield* timesOf(1, ["unavailable", { retryAfter: 0.1 }])
      assert.deepStrictEqual(sooner.times, [0, 1])
    }),
  )

  it.effect("varies each delay by chance, equally for equal requests", () =>
    Effect.gen(function* () {
      const jittered = { ...config, jitter: 0.5 }
      const first = yield* timesOf(2, ["unavailable"], jittered)
      const again = yield* timesOf(2, ["unavailable"], jittered)
      const other = yield* timesOf(2, ["unavailable"], jittered, "another")
      assert.deepStrictEqual(first.times, again.times)
      assert.notDeepEqual(first.times, other.times)
      assert.isTrue(first.times[1] >= 0.5 && first.times[1] <= 1, `${first.times[1]}`)
    }),
  )

  it.effect("starts again when the same effect is run again", () =>
    Effect.gen(function* () {
      const { lm, asked } = answering(() => Effect.fail(failure("unavailable")))
      const call = Effect.flip(retrying({ ...config, startingDelay: 0 })(lm).complete(request("?")))
      const errors = yield* Effect.all([call, call], { concurrency: 2 })
      assert.deepStrictEqual(
        errors.map(({ attempts }) => attempts),
        [6, 6],
      )
      assert.strictEqual(asked(), 12)
    }),
  )

  it.effect("reports each retry before its delay", () =>
    Effect.gen(function* () {
      const told: Array<Retry> = []
      const call = timesOf(2, ["unavailable", { message: "m: no connection" }])
      yield* Effect.provideService(call, RetrySink, (waiting) => Effect.sync(() => void told.push(waiting)))
      assert.deepStrictEqual(
        told.map(({ error, seconds, triesLeft }) => [error.message, seconds, triesLeft]),
        [
          ["m: no connection", 1, 5],
          ["m: no connection", 2, 4],
        ],
      )
    }),
  )

  it("computes the delay for any number of retries", () => {
    assert.strictEqual(delayOf({ ...config, jitter: 0 }, 2000, undefined, 0), config.maxDelay)
    assert.strictEqual(delayOf({ ...config, startingDelay: 0 }, 2000, undefined, 0), 0)
  })

  it("never retries earlier than the server asks for", () => {
    assert.isAtLeast(delayOf({ ...config, jitter: 1 }, 1, 20, 0.99), 20)
    assert.isAtMost(delayOf({ ...config, jitter: 1 }, 1, 59, 0.99), 60)
  })
})
