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
import { fieldsHash } from "../../../base/text/jsonFacts.ts"
import type { Plain } from "../../../base/config/plain.ts"
import { stream } from "../../../base/rng/Rng.ts"
import type { LmRequest } from "../Chat.ts"
import { CallContext } from "../Lm.ts"
import { SamplingSeed } from "./seeded.ts"

/**
 * Returns the seed of a request; null if the request is the first of its kind, whose seed `seeded` sets. Requests are equal if
 * their `fields` are; by default, the fields are those of the request.
 */
export type SeedOfRequest = (request: LmRequest, fields?: Plain) => Effect.Effect<number | null>

/**
 * Makes the function that counts equal requests and returns their seeds. The seed depends only on the request and on the number
 * of equal requests before it, so that the order of different requests does not matter.
 */
export const repeatSeeds = (): SeedOfRequest => {
  /** The number of equal requests so far, by the hashes of their fields. */
  const counts = new Map<number, number>()
  return Effect.fnUntraced(function* (request: LmRequest, fields: Plain = request) {
    const samplingSeed = yield* SamplingSeed
    if (request.seed !== null || samplingSeed === null) return request.seed
    const key = fieldsHash(fields)
    const nth = counts.get(key) ?? 0
    counts.set(key, nth + 1)
    if (nth === 0) return null
    const { purpose, step } = yield* CallContext
    // Servers accept signed 32-bit integers, so `>>> 1` keeps 31 bits.
    return stream(samplingSeed, "gateway", purpose, step, request.messages.length, nth).uint32() >>> 1
  })
}
