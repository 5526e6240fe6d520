/**
 * Seeds for the sampling of a server that takes one: whoever plays an episode sets its `SamplingSeed`, and around the
 * model `seeded` makes a seed of it for each call, always the same for the same call.
 */
import { Context, Effect } from "effect"
import { stream } from "../../rng/Rng.ts"
import { type Middleware, CallContext } from "../Lm.ts"

/** Of an episode; null outside of any. */
export const SamplingSeed = Context.Reference<number | null>("effect-rl/lm/SamplingSeed", {
  defaultValue: () => null,
})

/**
 * A request without a seed gets one, by the episode's seed, the step and how long the prompt is.
 *
 * @example `Lm.middleware(seeded)`
 */
export const seeded: Middleware = (lm) => ({
  complete: (request) =>
    Effect.gen(function* () {
      const samplingSeed = yield* SamplingSeed
      if (request.seed !== null || samplingSeed === null) return yield* lm.complete(request)
      const { purpose, step } = yield* CallContext
      // Servers take 32 bits with a sign.
      const seed = stream(samplingSeed, "sampling", purpose, step, request.messages.length).uint32() >>> 1
      return yield* lm.complete({ ...request, seed })
    }),
})
