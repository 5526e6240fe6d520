/**
 * What a run may spend on its model, counted over all of its models and resumes.
 *
 * @example
 * ```ts
 * const spent = new Spent()
 * const careful = budgeted({ tokens: 100_000, calls: null, money: null }, [], spent)(lm)
 * yield* careful.complete(request)
 * spent.tokens // of that call; the one that finds 100,000 fails with LmError `budget`
 * ```
 */
import { Effect, Schema } from "effect"
import type { Usage } from "../Chat.ts"
import type { Middleware } from "../Lm.ts"
import type { Budget, Price } from "../LmConfig.ts"
import { LmError } from "../LmError.ts"

/** What was spent, as a checkpoint keeps it. */
export const Spending = Schema.Struct({
  /** How often a server was asked, also where it gave no answer. */
  calls: Schema.Int,
  inputTokens: Schema.Int,
  outputTokens: Schema.Int,
  /** The money spent, in the currency of the prices. */
  money: Schema.Finite,
})
export type Spending = typeof Spending.Type

/** What was spent so far. Whoever runs something makes one, and gives it to all models of the run. */
export class Spent {
  calls = 0
  inputTokens = 0
  outputTokens = 0
  money = 0

  /** Goes on counting from there. */
  static from(saved: Spending): Spent {
    return Object.assign(new Spent(), saved)
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

/** The price of a model: by its whole name, else by the longest beginning of it. */
export const priceOf = (model: string, prices: ReadonlyArray<Price>): Price | undefined => {
  const name = model.replace(/^[a-z]+:/, "")
  return prices
    .filter((price) => model.startsWith(price.model) || name.startsWith(price.model))
    .toSorted((a, b) => b.model.length - a.model.length)[0]
}

const kinds = ["calls", "tokens", "money"] as const

/** A call that finds nothing left isn't made. Calls that are under way at that moment still count, and end. */
export const budgeted = (budget: Budget, prices: ReadonlyArray<Price>, spent: Spent): Middleware => {
  const known = new Map<string, Price | undefined>()
  const priceNow = (model: string): Price | undefined => {
    if (!known.has(model)) known.set(model, priceOf(model, prices))
    return known.get(model)
  }
  return (lm) => ({
    complete: (request) =>
      Effect.suspend(() => {
        for (const kind of kinds) {
          const limit = budget[kind]
          if (limit === null || spent[kind] < limit) continue
          const had = kind === "money" ? `a budget of ${limit}` : `a budget of ${limit} ${kind}`
          const money = Number(spent.money.toPrecision(6))
          const message =
            `${request.model}: ${had} is spent: ${spent.calls} calls, ${spent.tokens} tokens` +
            `${money === 0 ? "" : `, ${money} of money`}; budget.${kind} says how much may be`
          const more = Number((2 * Math.max(limit, spent[kind])).toPrecision(6)) || 1
          const remedy = `budget.${kind}=${more}`
          return Effect.fail(new LmError({ model: request.model, reason: "budget", attempts: 0, message, remedy }))
        }
        // Counted before it is made: of calls there are never more than allowed.
        spent.calls++
        const pay = ({ usage }: { readonly usage?: Usage }): Effect.Effect<void> =>
          Effect.sync(() => {
            if (usage !== undefined) spent.add(usage, priceNow(request.model))
          })
        return lm.complete(request).pipe(Effect.tap(pay), Effect.tapError(pay))
      }),
  })
}
