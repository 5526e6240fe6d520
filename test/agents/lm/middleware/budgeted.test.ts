import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { budgeted, priceOf, Spending, SpendingCounter } from "../../../../src/agents/lm/middleware/budgeted.ts"
import type { Budget } from "../../../../src/agents/lm/LmConfig.ts"
import { answering, completion, failure, request } from "../support.ts"

const none: Budget = { tokens: null, calls: null, money: null }
const price = { model: "m", input: 2, output: 8 }

describe("budgeted", () => {
  it.effect("fails before a call that the budget does not cover", () =>
    Effect.gen(function* () {
      const { lm, asked } = answering(() => Effect.succeed(completion("yes", 40)))
      const spent = new SpendingCounter()
      const careful = budgeted({ ...none, tokens: 100 }, [price], spent)(lm)
      for (let call = 0; call < 3; call++) yield* careful.complete(request("?"))
      const error = yield* Effect.flip(careful.complete(request("?")))
      assert.strictEqual(error.reason, "budget")
      assert.strictEqual(
        error.message,
        "m: the budget of 100 tokens is spent (3 calls, 120 tokens, money: 0.00024); raise budget.tokens to continue",
      )
      assert.deepStrictEqual([asked(), spent.calls, error.attempts], [3, 3, 0])
      assert.strictEqual(error.remedy, "budget.tokens=240")
      const free = yield* Effect.flip(
        budgeted({ ...none, calls: 0 }, [], new SpendingCounter())(lm).complete(request("?")),
      )
      assert.strictEqual(
        free.message,
        "m: the budget of 0 calls is spent (0 calls, 0 tokens); raise budget.calls to continue",
      )
      assert.strictEqual(free.remedy, "budget.calls=1")
    }),
  )

  it.effect("counts a negative number of tokens as none, so that its totals can be read again", () =>
    Effect.gen(function* () {
      const { lm } = answering((nth) =>
        nth === 0
          ? Effect.succeed(completion("yes", -1))
          : Effect.fail(failure("refused", { usage: completion("", -5).usage })),
      )
      const spent = new SpendingCounter()
      const careful = budgeted(none, [price], spent)(lm)
      assert.strictEqual((yield* careful.complete(request("?"))).usage.inputTokens, 0)
      yield* Effect.flip(careful.complete(request("?")))
      assert.deepStrictEqual(yield* Schema.decodeUnknownEffect(Spending)(spent.save()), spent.save())
    }),
  )

  it.effect("counts failed calls, and never makes more than allowed, with any concurrency", () =>
    Effect.gen(function* () {
      const { lm, asked } = answering((nth) =>
        nth % 2 === 0 ? Effect.delay(Effect.fail(failure("unavailable")), 0) : "yes",
      )
      const spent = new SpendingCounter()
      const careful = budgeted({ ...none, calls: 7 }, [], spent)(lm)
      const results = yield* Effect.forEach(
        Array.from({ length: 20 }),
        () => Effect.result(careful.complete(request("?"))),
        { concurrency: "unbounded" },
      )
      assert.strictEqual(asked(), 7)
      assert.strictEqual(spent.calls, 7)
      assert.strictEqual(results.filter((r) => r._tag === "Failure" && r.failure.reason === "budget").length, 13)
    }),
  )

  it.effect("counts the tokens of billed responses that are not answers", () =>
    Effect.gen(function* () {
      const usage = { inputTokens: 40, outputTokens: 10, reasoningTokens: 0 }
      const { lm, asked } = answering((nth) => Effect.fail(failure(nth === 0 ? "malformed" : "refused", { usage })))
      const spent = new SpendingCounter()
      const careful = budgeted({ ...none, tokens: 100 }, [price], spent)(lm)
      const reasons: Array<string> = []
      for (let call = 0; call < 3; call++) reasons.push((yield* Effect.flip(careful.complete(request("?")))).reason)
      assert.deepStrictEqual(reasons, ["malformed", "refused", "budget"])
      assert.deepStrictEqual([asked(), spent.tokens, spent.money], [2, 100, 0.00032])
    }),
  )

  it.effect("continues the counts of an earlier part of the run, over several models", () =>
    Effect.gen(function* () {
      const { lm } = answering(() => Effect.succeed(completion("yes", 500_000)))
      const spent = new SpendingCounter()
      yield* budgeted({ ...none, money: 2 }, [price], spent)(lm).complete(request("?"))
      assert.deepStrictEqual(spent.save(), { calls: 1, inputTokens: 500_000, outputTokens: 0, money: 1 })
      const resumed = SpendingCounter.from(spent.save())
      const careful = budgeted({ ...none, money: 2 }, [price], resumed)(lm)
      yield* budgeted(none, [price], resumed)(lm).complete(request("?"))
      assert.strictEqual((yield* Effect.flip(careful.complete(request("?")))).reason, "budget")
      assert.strictEqual(resumed.money, 2)
      assert.strictEqual(spent.money, 1)
    }),
  )

  it("finds the price with the longest matching name", () => {
    const prices = ["gpt", "gpt-4.1-mini", "gpt-4.1"].map((model) => ({ model, input: 1, output: 1 }))
    assert.strictEqual(priceOf("gpt-4.1-mini-2025", prices)?.model, "gpt-4.1-mini")
    assert.strictEqual(priceOf("vllm:gpt-4", prices)?.model, "gpt")
    assert.isUndefined(priceOf("claude", prices))
  })
})
