import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { expectedTokens, limited } from "../../../../src/agents/lm/middleware/limited.ts"
import type { Limits } from "../../../../src/agents/lm/LmConfig.ts"
import { answering, completion, failure, request } from "../support.ts"

const none: Limits = { concurrency: null, requestsPerMinute: null, tokensPerMinute: null }

/** Asks `count` times at once, and says when (in seconds) who got to the model, and how many were there at most. */
const trial = (limits: Partial<Limits>, count: number, seconds: number, tokens = 0, more = {}) =>
  Effect.gen(function* () {
    const began: Array<readonly [text: string, at: number]> = []
    let now = 0
    let most = 0
    const { lm } = answering((_, { messages }) =>
      Effect.gen(function* () {
        began.push([messages[0].content, (yield* Clock.currentTimeMillis) / 1000])
        most = Math.max(most, ++now)
        yield* Effect.sleep(seconds * 1000)
        now--
        return completion("yes", tokens)
      }),
    )
    const polite = limited({ ...none, ...limits })(lm)
    const fibers = yield* Effect.forEach(Array.from({ length: count }), (_, index) =>
      Effect.forkChild(polite.complete(request(`${index}`, more)), { startImmediately: true }),
    )
    yield* TestClock.adjust("1 hour")
    for (const fiber of fibers) yield* Fiber.join(fiber)
    assert.deepStrictEqual(
      began.map(([text]) => text),
      Array.from({ length: count }, (_, index) => `${index}`),
    )
    return { times: began.map(([, at]) => at - began[0][1]), most }
  })

describe("limited", () => {
  it.effect("limits the calls at the same time, in the order of arrival", () =>
    Effect.gen(function* () {
      const { times, most } = yield* trial({ concurrency: 2 }, 5, 10)
      assert.deepStrictEqual(times, [0, 0, 10, 10, 20])
      assert.strictEqual(most, 2)
    }),
  )

  it.effect("limits the calls that begin in any minute", () =>
    Effect.gen(function* () {
      const { times } = yield* trial({ requestsPerMinute: 2 }, 5, 1)
      assert.deepStrictEqual(times, [0, 0, 60, 60, 120])
      const both = yield* trial({ requestsPerMinute: 2, concurrency: 1 }, 5, 20)
      assert.deepStrictEqual(both.times, [0, 20, 60, 80, 120])
    }),
  )

  it.effect("estimates the tokens of a call until they are known", () =>
    Effect.gen(function* () {
      assert.strictEqual(expectedTokens(request("x".repeat(40), { maxOutputTokens: 50 })), 60)
      // Each might take 51, so one goes after another, until it turns out that they took 10.
      const small = yield* trial({ tokensPerMinute: 100 }, 12, 1, 10, { maxOutputTokens: 50 })
      assert.deepStrictEqual(small.times.slice(0, 7), [0, 1, 2, 3, 4, 60, 61])
      // Calls that need more tokens than a minute allows are sent one by one.
      const large = yield* trial({ tokensPerMinute: 100 }, 3, 1, 1000, { maxOutputTokens: 5000 })
      assert.deepStrictEqual(large.times, [0, 60, 120])
    }),
  )

  it.effect("lets no small request overtake a large one that waits", () =>
    Effect.gen(function* () {
      const began: Array<number | null> = []
      const { lm } = answering((_, { maxOutputTokens }) =>
        Effect.sync(() => {
          began.push(maxOutputTokens)
          return completion("yes", maxOutputTokens ?? 0)
        }),
      )
      const polite = limited({ ...none, tokensPerMinute: 100 })(lm)
      const fibers = yield* Effect.forEach([60, 80, 10], (maxOutputTokens) =>
        Effect.forkChild(polite.complete(request("", { maxOutputTokens })), { startImmediately: true }),
      )
      assert.deepStrictEqual(began, [60])
      yield* TestClock.adjust("1 minute")
      for (const fiber of fibers) yield* Fiber.join(fiber)
      assert.deepStrictEqual(began, [60, 80, 10])
    }),
  )

  it.effect("counts the tokens of billed responses that are not answers", () =>
    Effect.gen(function* () {
      const usage = { inputTokens: 100, outputTokens: 0, reasoningTokens: 0 }
      const { lm, asked } = answering(() => Effect.fail(failure("refused", { usage })))
      const polite = limited({ ...none, tokensPerMinute: 100 })(lm)
      yield* Effect.flip(polite.complete(request("", { maxOutputTokens: 1 })))
      const second = yield* Effect.forkChild(Effect.flip(polite.complete(request("", { maxOutputTokens: 1 }))))
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(asked(), 1)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(second)
      assert.strictEqual(asked(), 2)
    }),
  )

  it.effect("frees the place of a call that was interrupted or failed, waiting or not", () =>
    Effect.gen(function* () {
      let open = false
      const { lm, asked } = answering((nth) =>
        open ? "yes" : nth === 0 ? Effect.never : Effect.fail(failure("unavailable")),
      )
      const polite = limited({ concurrency: 1, requestsPerMinute: 3, tokensPerMinute: 100 })(lm)
      const ask = Effect.forkChild(Effect.result(polite.complete(request("?"))), { startImmediately: true })
      const first = yield* ask
      const second = yield* ask
      const third = yield* ask
      yield* Fiber.interrupt(second)
      assert.strictEqual(asked(), 1)
      yield* Fiber.interrupt(first)
      assert.strictEqual((yield* Fiber.join(third))._tag, "Failure")
      open = true
      assert.strictEqual((yield* Fiber.join(yield* ask))._tag, "Success")
      // Three in this minute; the fourth leaves the queue, and the fifth takes its place.
      const fourth = yield* ask
      const fifth = yield* ask
      yield* TestClock.adjust("59 seconds")
      yield* Fiber.interrupt(fourth)
      assert.strictEqual(asked(), 3)
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(fifth))._tag, "Success")
    }),
  )

  it.effect("limits all models together that one middleware wraps", () =>
    Effect.gen(function* () {
      const polite = limited({ ...none, concurrency: 1 })
      const { lm: one } = answering(() => Effect.never)
      const { lm: other, asked } = answering(() => "yes")
      yield* Effect.forkChild(polite(one).complete(request("?")), { startImmediately: true })
      yield* Effect.forkChild(polite(other).complete(request("?")), { startImmediately: true })
      assert.strictEqual(asked(), 0)
    }),
  )

  it("gives the model itself if nothing is limited", () => {
    const { lm } = answering(() => "yes")
    assert.strictEqual(limited(none)(lm), lm)
  })
})
