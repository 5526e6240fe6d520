/**
 * Chooses the seeds of requests that a program repeats. A program that asks the same question several times expects different
 * answers, e.g. to take the most frequent one, but `seeded` gives equal requests equal seeds.
 *
 * @example
 * ```ts
 * const seedOf = repeatSeeds()
 * yield* lm.complete({ ...request, seed: yield* seedOf(request) }) // null: the middleware `seeded` sets the seed
 * yield* lm.complete({ ...request, seed: yield* seedOf(request) }) // another seed
 * ```
 */
import { Effect } from "effect"
import { canonical } from "../../../base/config/canonical.ts"
import { sha256 } from "../../../base/config/sha256.ts"
import { utf8 } from "../../../base/config/utf8.ts"
import { stream } from "../../../base/rng/Rng.ts"
import type { LmRequest } from "../Chat.ts"
import { CallContext } from "../Lm.ts"
import { CurrentExchange, digestOf } from "../RawExchange.ts"
import { SamplingSeed } from "./seeded.ts"

/** Returns the seed of a request; null if the request is the first of its kind, whose seed `seeded` sets. */
export type SeedOfRequest = (request: LmRequest) => Effect.Effect<number | null>

/**
 * Makes the function that counts equal requests and returns their seeds. The seed depends only on the request and on the number
 * of equal requests before it, so that the order of different requests does not matter.
 */
export const repeatSeeds = (): SeedOfRequest => {
  /** The number of equal requests so far, by their digests. */
  const counts = new Map<string, number>()
  return Effect.fnUntraced(function* (request: LmRequest) {
    const samplingSeed = yield* SamplingSeed
    if (request.seed !== null || samplingSeed === null) return request.seed
    const raw = yield* CurrentExchange
    const text = canonical({ request, raw: raw === null ? null : yield* digestOf(raw) })
    const key = yield* sha256(utf8.encode(text))
    const nth = counts.get(key) ?? 0
    counts.set(key, nth + 1)
    if (nth === 0) return null
    const { purpose, step } = yield* CallContext
    // Servers accept signed 32-bit integers, so `>>> 1` keeps 31 bits.
    return stream(samplingSeed, "gateway", purpose, step, request.messages.length, nth).uint32() >>> 1
  })
}
