import { Clock, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { budgeted, SpendingCounter } from "../src/agents/lm/middleware/budgeted.ts"
import { canonical } from "../src/base/text/canonical.ts"
import { type Completion, LmRequest } from "../src/agents/lm/Chat.ts"
import { limited } from "../src/agents/lm/middleware/limited.ts"
import type { LmService } from "../src/agents/lm/Lm.ts"
import { LmError } from "../src/agents/lm/LmError.ts"
import { delayOf, longestRetryAfter, retrying } from "../src/agents/lm/middleware/retrying.ts"

const request = (content: string): LmRequest => ({
  ...LmRequest.defaults,
  model: "m",
  messages: [{ role: "user", content }],
})

const completion = (tokens: number): Completion => ({
  content: "yes",
  toolCalls: [],
  finishReason: "stop",
  usage: { inputTokens: tokens, outputTokens: 0, reasoningTokens: 0 },
  tokens: null,
  model: "m",
  attempts: 1,
})

const run = <A>(effect: Effect.Effect<A, never, never>): Promise<A> =>
  Effect.runPromise(Effect.provide(effect, TestClock.layer().pipe(Layer.orDie)))

/** Starts them all, lets so much time pass that everything ends, and waits for them. */
const allOf = <A>(effects: ReadonlyArray<Effect.Effect<A>>): Effect.Effect<ReadonlyArray<A>> =>
  Effect.gen(function* () {
    const fibers = yield* Effect.forEach(effects, (effect) => Effect.forkChild(effect, { startImmediately: true }))
    yield* TestClock.adjust("30 days")
    return yield* Effect.forEach(fibers, Fiber.join)
  })

describe("the key of a request", () => {
  /** The same value, with the keys of its objects in another order. */
  const shuffled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shuffled)
    if (typeof value !== "object" || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([key, item]) => [key, shuffled(item)]),
    )
  }

  it("ignores the order of keys", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        assert.strictEqual(canonical(shuffled(value)), canonical(value))
      }),
    )
  })

  it("differs where requests differ, and is the request's JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        const equal = JSON.stringify(JSON.parse(canonical(one))) === JSON.stringify(JSON.parse(canonical(other)))
        assert.strictEqual(canonical(one) === canonical(other), equal)
        // −0 is 0 in JSON.
        assert.deepStrictEqual(JSON.parse(canonical(one)), JSON.parse(JSON.stringify(one)))
      }),
    )
  })
})

const retries = fc.record({
  maxRetries: fc.integer({ min: 0, max: 8 }),
  startingDelay: fc.double({ min: 0, max: 20, noNaN: true }),
  backoffFactor: fc.double({ min: 0.1, max: 5, noNaN: true }),
  maxDelay: fc.double({ min: 0, max: 100, noNaN: true }),
  jitter: fc.double({ min: 0, max: 1, noNaN: true }),
})

describe("retries", () => {
  it("are never more than the limit, and all attempts are counted", async () => {
    const outcome = fc.constantFrom("unavailable", "malformed", "rejected", "unauthorised", "yes")
    await fc.assert(
      fc.asyncProperty(retries, fc.array(outcome, { maxLength: 12 }), async (config, outcomes) => {
        let asked = 0
        const lm: LmService = {
          complete: () =>
            Effect.suspend(() => {
              const now = outcomes[asked++] ?? "unavailable"
              return now === "yes"
                ? Effect.succeed(completion(1))
                : Effect.fail(new LmError({ model: "m", reason: now, attempts: 1, message: "m: no" }))
            }),
        }
        const [result] = await run(allOf([Effect.result(retrying(config)(lm).complete(request("?")))]))
        const counted = result._tag === "Success" ? result.success.attempts : result.failure.attempts
        assert.isAtMost(asked, config.maxRetries + 1)
        assert.strictEqual(counted, asked)
        const passing = outcomes.findIndex((one) => one !== "unavailable" && one !== "malformed")
        const expected = passing < 0 || passing > config.maxRetries ? "exhausted" : outcomes[passing]
        assert.strictEqual(result._tag === "Success" ? "yes" : result.failure.reason, expected)
      }),
    )
  })

  it("wait no longer than allowed, and no less than the server asks for", () => {
    const chance = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })
    fc.assert(
      fc.property(
        retries,
        fc.integer({ min: 1, max: 9 }),
        fc.option(fc.double({ min: 0, max: 1e6, noNaN: true }), { nil: undefined }),
        chance,
        (config, retry, retryAfter, chance) => {
          const delay = delayOf(config, retry, retryAfter, chance)
          const longest = retryAfter === undefined ? config.maxDelay : Math.max(config.maxDelay, longestRetryAfter)
          assert.isAtMost(delay, longest)
          assert.isAtLeast(delay, Math.min(retryAfter ?? 0, longest))
          const backoff = Math.min(config.maxDelay, config.startingDelay * config.backoffFactor ** (retry - 1))
          assert.isAtLeast(delay, backoff * (1 - config.jitter))
        },
      ),
    )
  })
})

describe("a budget", () => {
  it("is exceeded by running calls at most, and the number of calls never", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          tokens: fc.option(fc.integer({ min: 0, max: 300 })),
          calls: fc.option(fc.integer({ min: 0, max: 20 })),
          money: fc.option(fc.double({ min: 0, max: 300, noNaN: true })),
        }),
        fc.array(fc.record({ tokens: fc.integer({ min: 0, max: 60 }), seconds: fc.integer({ min: 0, max: 9 }) })),
        fc.integer({ min: 1, max: 6 }),
        async (budget, calls, concurrency) => {
          const spent = new SpendingCounter()
          let asked = 0
          let underWay = 0
          let most = 0
          const lm: LmService = {
            complete: () =>
              Effect.gen(function* () {
                const { tokens, seconds } = calls[asked++]
                most = Math.max(most, ++underWay)
                yield* Effect.sleep(seconds * 1000)
                underWay--
                return completion(tokens)
              }),
          }
          const careful = limited({ concurrency, requestsPerMinute: null, tokensPerMinute: null })(
            // A million tokens for a million: money is tokens.
            budgeted(budget, [{ model: "m", input: 1e6, output: 1e6 }], spent)(lm),
          )
          const results = await run(allOf(calls.map(() => Effect.result(careful.complete(request("?"))))))
          assert.isAtMost(most, concurrency)
          if (budget.calls !== null) assert.isAtMost(spent.calls, budget.calls)
          const over = (most || 1) * Math.max(0, ...calls.map(({ tokens }) => tokens))
          for (const limit of [budget.tokens, budget.money]) {
            if (limit !== null) assert.isAtMost(spent.tokens, limit + over)
          }
          const refused = results.filter((result) => result._tag === "Failure").length
          assert.strictEqual(asked + refused, calls.length)
          // Nobody is refused while there is something left.
          if (refused > 0) {
            assert.isTrue(
              (["tokens", "calls", "money"] as const).some((kind) => {
                const limit = budget[kind]
                return limit !== null && spent[kind] >= limit
              }),
            )
          }
        },
      ),
    )
  })
})

describe("limits", () => {
  it("hold in every minute, in the order of arrival", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 200 }),
        fc.array(fc.record({ tokens: fc.integer({ min: 0, max: 150 }), seconds: fc.integer({ min: 0, max: 150 }) }), {
          maxLength: 12,
        }),
        async (requestsPerMinute, tokensPerMinute, calls) => {
          const begun: Array<{ readonly index: number; readonly at: number }> = []
          const lm: LmService = {
            complete: ({ messages }) =>
              Effect.gen(function* () {
                const index = Number(messages[0].content)
                begun.push({ index, at: yield* Clock.currentTimeMillis })
                yield* Effect.sleep(calls[index].seconds * 1000)
                return completion(calls[index].tokens)
              }),
          }
          const polite = limited({ concurrency: null, requestsPerMinute, tokensPerMinute })(lm)
          await run(
            allOf(
              calls.map(({ tokens }, index) =>
                // Nothing takes more than was feared.
                Effect.orDie(polite.complete({ ...request(String(index)), maxOutputTokens: tokens })),
              ),
            ),
          )
          assert.deepStrictEqual(
            begun.map(({ index }) => index),
            calls.map((_, index) => index),
          )
          for (const first of begun) {
            const minute = begun.filter(({ index, at }) => index >= first.index && at < first.at + 60_000)
            assert.isAtMost(minute.length, requestsPerMinute)
            const used = minute.map(({ index }) => calls[index].tokens)
            // One that is larger than the limit goes alone.
            assert.isAtMost(
              used.reduce((sum, tokens) => sum + tokens),
              Math.max(tokensPerMinute, ...used),
            )
          }
        },
      ),
    )
  })
})
