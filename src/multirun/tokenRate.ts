/** Measures how many tokens a second a trainer trains on, for its logs. No result depends on it. */
import { Clock, Effect } from "effect"

/** The least time over which the rate is measured, so that it does not jump. */
const leastMillis = 1000

/**
 * Makes the function that returns the rate as a metric, given the number of all tokens until now. It returns no metric
 * until a second has passed since the last one.
 *
 * @example
 * ```ts
 * const tokenRate = yield* makeTokenRate(0)
 * yield* tokenRate(4096) // a second later: { "trainer/tokens_per_second": 4096 }
 * ```
 */
export const makeTokenRate = Effect.fnUntraced(function* (tokensBefore: number) {
  let last = { at: yield* Clock.currentTimeMillis, tokens: tokensBefore }
  return Effect.fnUntraced(function* (tokens: number): Effect.fn.Return<Readonly<Record<string, number>>> {
    const at = yield* Clock.currentTimeMillis
    if (at - last.at < leastMillis) return {}
    const rate = ((tokens - last.tokens) * 1000) / (at - last.at)
    last = { at, tokens }
    return { "trainer/tokens_per_second": rate }
  })
})
