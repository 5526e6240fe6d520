/**
 * Defines the service that calls a language model, of any provider. Retries, limits, budgets, the cache and the log of calls
 * are middleware: functions that wrap such a service, and that can be combined in any order.
 */
import { Context, Effect, Layer, Schema } from "effect"
import type { Completion, LmRequest } from "./Chat.ts"
import type { LmError } from "./LmError.ts"
import type { RawProtocol } from "./RawExchange.ts"

export interface LmService {
  readonly complete: (request: LmRequest) => Effect.Effect<Completion, LmError>
  /** The protocols in which the model's server takes the bodies of other programs; left out if it takes none. */
  readonly speaks?: ReadonlyArray<RawProtocol>
}

/** A function that wraps each call of an `Lm` service, e.g. `limited(limits)`. */
export type Middleware = (lm: LmService) => LmService

export class Lm extends Context.Service<Lm, LmService>()("effect-rl/lm/Lm") {
  static readonly complete = (request: LmRequest): Effect.Effect<Completion, LmError, Lm> =>
    Effect.flatMap(Lm, (lm) => lm.complete(request))

  /** Makes a Layer that wraps its input `Lm` in all these middleware; the first one is closest to the model. */
  static readonly middleware = (...all: ReadonlyArray<Middleware>): Layer.Layer<Lm, never, Lm> =>
    Layer.effect(
      Lm,
      Effect.map(Lm, (lm) => all.reduce((inner, wrap) => wrap(inner), lm)),
    )
}

/**
 * Identifies a call by the phase of the run, the episode, the step and the purpose of the call. The log, the cache, the
 * retries and the sampling seeds use it. The code that plays an episode provides it with `Effect.provideService(CallContext,
 * { … })`. The phase `default` is for calls outside of runs.
 */
export const CallPlace = Schema.Struct({
  phase: Schema.Union([
    Schema.TaggedStruct("train", {}),
    /** `seenEpisodes` is the number of training episodes before this validation. */
    Schema.TaggedStruct("validation", { seenEpisodes: Schema.Int }),
    Schema.TaggedStruct("default", {}),
  ]),
  purpose: Schema.Literals(["action", "reflection", "judgement"]),
  /** The number of the episode, counted from 1; 0 for a call outside of episodes. */
  episode: Schema.Int,
  step: Schema.Int,
})
export type CallContext = typeof CallPlace.Type

export const CallContext = Context.Reference<CallContext>("effect-rl/lm/CallContext", {
  defaultValue: () => ({ phase: { _tag: "default" }, purpose: "action", episode: 0, step: 0 }),
})
