/** Measures how many tokens a second a trainer trains on and generates, for its logs. No result depends on it. */
import { Clock, Effect } from "effect"

/** The least time over which a rate is measured, so that it does not jump. */
const leastMillis = 1000

/** The numbers of all tokens until now. */
interface TokenCounts {
  readonly trained: number
  /** The tokens that the engine of this process has generated; 0 if others generate. */
  readonly generated: number
}

/**
 * Makes the function that returns the rates as metrics, given the numbers of all tokens until now. It returns no metrics
 * until a second has passed since the last ones. Without generated tokens it has no rate of them.
 *
 * @example
 * ```ts
 * const tokenRate = yield* makeTokenRate({ trained: 0, generated: 0 })
 * // A second later: { "trainer/tokens_per_second": 4096, "trainer/generated_tokens_per_second": 512 }
 * yield* tokenRate({ trained: 4096, generated: 512 })
 * ```
 */
export const makeTokenRate = Effect.fnUntraced(function* (before: TokenCounts) {
  let last = { at: yield* Clock.currentTimeMillis, counts: before }
  return Effect.fnUntraced(function* (counts: TokenCounts): Effect.fn.Return<Readonly<Record<string, number>>> {
    const at = yield* Clock.currentTimeMillis
    const millis = at - last.at
    if (millis < leastMillis) return {}
    const rateOf = (name: keyof TokenCounts): number => ((counts[name] - last.counts[name]) * 1000) / millis
    const trained = { "trainer/tokens_per_second": rateOf("trained") }
    const rates =
      counts.generated === 0 ? trained : { ...trained, "trainer/generated_tokens_per_second": rateOf("generated") }
    last = { at, counts }
    return rates
  })
})
