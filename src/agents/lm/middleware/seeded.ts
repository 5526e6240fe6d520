/**
 * Sets the seed with which a server samples an answer. The code that plays an episode provides its `SamplingSeed`; the
 * middleware `seeded` derives a seed for each call from it, always the same for the same call.
 */
import { Context, Effect } from "effect"
import { stream } from "../../../base/rng/Rng.ts"
import { type Middleware, CallContext } from "../Lm.ts"

/** The seed of an episode's answers; null outside of episodes. */
export const SamplingSeed = Context.Reference<number | null>("effect-rl/lm/SamplingSeed", {
  defaultValue: () => null,
})

/**
 * Sets the seed of requests that have none, from the episode's seed, the step and the number of messages.
 *
 * @example `Lm.middleware(seeded)`
 */
export const seeded: Middleware = (lm) => ({
  complete: (request) =>
    Effect.gen(function* () {
      const samplingSeed = yield* SamplingSeed
      if (request.seed !== null || samplingSeed === null) return yield* lm.complete(request)
      const { purpose, step } = yield* CallContext
      // Servers accept signed 32-bit integers, so `>>> 1` keeps 31 bits.
      const seed = stream(samplingSeed, "sampling", purpose, step, request.messages.length).uint32() >>> 1
      return yield* lm.complete({ ...request, seed })
    }),
})
