/**
 * Limits the calls, the tokens and the money that a run may spend on its models. The totals include all models of the run.
 * They are kept in memory and saved in checkpoints, so a resumed run continues the count.
 *
 * @example
 * ```ts
 * const spent = new SpendingCounter()
 * const careful = budgeted({ tokens: 100_000, calls: null, money: null }, [], spent)(lm)
 * yield* careful.complete(request)
 * spent.tokens // the tokens of that call; once it reaches 100,000, calls fail with LmError `budget`
 * ```
 */
import { Effect, Schema } from "effect"
import type { Usage } from "../Chat.ts"
import type { Middleware } from "../Lm.ts"
import type { Budget, Price } from "../LmConfig.ts"
import { lmError } from "../LmError.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** The totals of a run's calls, as a checkpoint saves them. */
export const Spending = Schema.Struct({
  /** The number of requests to servers, failed ones included. */
  calls: Count,
  inputTokens: Count,
  outputTokens: Count,
  /** The money spent, in the currency of the prices. */
  money: Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)),
})
export type Spending = typeof Spending.Type

/** Counts what a run has spent. All models of the run share one counter. */
export class SpendingCounter {
  calls = 0
  inputTokens = 0
  outputTokens = 0
  money = 0

  /** Makes a counter that continues from saved totals. */
  static from(saved: Spending): SpendingCounter {
    return Object.assign(new SpendingCounter(), saved)
  }

  get tokens(): number {
    return this.inputTokens + this.outputTokens
  }

  add({ inputTokens, outputTokens }: Usage, price: Price | undefined): void {
    this.inputTokens += inputTokens
    this.outputTokens += outputTokens
    if (price !== undefined) this.money += (inputTokens * price.input + outputTokens * price.output) / 1e6
  }

  save(): Spending {
    const { calls, inputTokens, outputTokens, money } = this
    return { calls, inputTokens, outputTokens, money }
  }
}

/**
 * Finds the price of a model: the one whose `model` matches the longest beginning of the model's name, with or without a
 * prefix such as `vllm:`. Returns undefined if no price matches.
 */
export const priceOf = (model: string, prices: ReadonlyArray<Price>): Price | undefined => {
  const name = model.replace(/^[a-z]+:/, "")
  return prices
    .filter((price) => model.startsWith(price.model) || name.startsWith(price.model))
    .toSorted((a, b) => b.model.length - a.model.length)[0]
}

const kinds = ["calls", "tokens", "money"] as const

/** Counts as 0 what is below 0: some servers report −1 for a number that they do not know. */
const counted = ({ inputTokens, outputTokens, reasoningTokens }: Usage): Usage => ({
  inputTokens: Math.max(0, inputTokens),
  outputTokens: Math.max(0, outputTokens),
  reasoningTokens: Math.max(0, reasoningTokens),
})

/** Makes calls fail once the budget is spent. Calls that are already running still finish, and are counted. */
export const budgeted =
  (budget: Budget, prices: ReadonlyArray<Price>, spent: SpendingCounter): Middleware =>
  (lm) => ({
    complete: (request) =>
      Effect.suspend(() => {
        for (const kind of kinds) {
          const limit = budget[kind]
          if (limit === null || spent[kind] < limit) continue
          const total = kind === "money" ? `${limit}` : `${limit} ${kind}`
          const money = Number(spent.money.toPrecision(6))
          const problem =
            `the budget of ${total} is spent (${spent.calls} calls, ${spent.tokens} tokens` +
            `${money === 0 ? "" : `, money: ${money}`}); raise budget.${kind} to continue`
          // Suggest a limit that allows twice as much; 1 if the limit was 0 and nothing is spent.
          const largerLimit = Number((2 * Math.max(limit, spent[kind])).toPrecision(6)) || 1
          return Effect.fail(lmError(request.model, "budget", problem, { remedy: `budget.${kind}=${largerLimit}` }))
        }
        // Count the call before it begins, so that concurrent calls cannot exceed the budget.
        spent.calls++
        const pay = ({ usage }: { readonly usage?: Usage }): Effect.Effect<void> =>
          Effect.sync(() => {
            if (usage !== undefined) spent.add(counted(usage), priceOf(request.model, prices))
          })
        return lm.complete(request).pipe(
          Effect.map((completion) => ({ ...completion, usage: counted(completion.usage) })),
          Effect.tap(pay),
          Effect.tapError(pay),
        )
      }),
  })
