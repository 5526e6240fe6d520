/** Measures how many tokens per second a trainer trains on and generates, for its logs. It does not affect results. */
import { Clock, Effect } from "effect"

/** The shortest time in milliseconds over which a rate is measured, because shorter ones fluctuate. */
const leastMillis = 1000

/** The numbers of all tokens so far. */
interface TokenCounts {
  readonly trained: number
  /** The number of tokens that the engine of this process has generated; 0 if other processes generate. */
  readonly generated: number
}

/**
 * Makes the function that computes the rates from the numbers of all tokens so far. It returns no metrics until a second has
 * passed since the last ones, and no rate of generated tokens if there are none.
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
