/**
 * Asking a language model: one service, whoever answers. What is around a call (retries, limits, budgets, a cache, a
 * log) are functions from one such service to another, so they compose in any order.
 */
import { Context, Effect, Layer } from "effect"
import type { Completion, LmRequest } from "./Chat.ts"
import type { LmError } from "./LmError.ts"

export interface LmService {
  readonly complete: (request: LmRequest) => Effect.Effect<Completion, LmError>
}

/** Middleware every call: `cached(store)`, `limited({ concurrency: 8 })` … */
export type Middleware = (lm: LmService) => LmService

export class Lm extends Context.Service<Lm, LmService>()("effect-rl/lm/Lm") {
  static readonly complete = (request: LmRequest): Effect.Effect<Completion, LmError, Lm> =>
    Effect.flatMap(Lm, (lm) => lm.complete(request))

  /** The first function is the innermost. */
  static readonly middleware = (...all: ReadonlyArray<Middleware>): Layer.Layer<Lm, never, Lm> =>
    Layer.effect(
      Lm,
      Effect.map(Lm, (lm) => all.reduce((inner, around) => around(inner), lm)),
    )
}

/**
 * Which call this is, for logs: where it belongs in `llm_calls/`, and what for. Set by whoever runs an episode, by
 * `Effect.provideService(CallContext, { … })`.
 */
export interface CallContext {
  readonly phase:
    | { readonly _tag: "train" }
    | { readonly _tag: "validation"; readonly seenEpisodes: number }
    | { readonly _tag: "default" }
  readonly purpose: "action" | "reflection" | "judgement"
  /** Counted from 1; 0 outside of any. */
  readonly episode: number
  readonly step: number
}

export const CallContext = Context.Reference<CallContext>("effect-rl/lm/CallContext", {
  defaultValue: () => ({ phase: { _tag: "default" }, purpose: "action", episode: 0, step: 0 }),
})
