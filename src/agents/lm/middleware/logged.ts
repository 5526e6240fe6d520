/**
 * Reports every call of a model to a `CallSink`: the request, its episode and step, and its result. The sinks of a run
 * write files; this module writes nothing.
 *
 * @example
 * ```ts
 * const calls: Array<CallRecord> = []
 * const collect = CallSink.whole((record) => Effect.sync(() => calls.push(record)))
 * yield* logged(lm).complete(request).pipe(Effect.provideService(CallSink, collect))
 * ```
 */
import { Cause, Clock, Context, Effect, Exit, Option, Schema } from "effect"
import { Completion, LmRequest } from "../Chat.ts"
import { CallContext, CallPlace, type Middleware } from "../Lm.ts"
import type { LmError } from "../LmError.ts"

/** Describes a call at its beginning, or at its end with either a response or an error. */
export const CallRecord = Schema.Struct({
  /** The name of the model that the request asks for. */
  model: Schema.String,
  context: CallPlace,
  request: LmRequest,
  /** The completion, with its token usage and its number of attempts; null if there is none. */
  response: Schema.NullOr(Completion),
  error: Schema.NullOr(
    Schema.Struct({
      /** The `reason` of the `LmError`, or `interrupted`, or `defect` for an unexpected exception. */
      reason: Schema.String,
      message: Schema.String,
      attempts: Schema.Int,
    }),
  ),
  startedAtMillis: Schema.Finite,
  /** The time at which the call ended, in milliseconds since 1970; null until then. */
  endedAtMillis: Schema.NullOr(Schema.Finite),
})
export type CallRecord = typeof CallRecord.Type

export interface CallSink {
  /** Receives the record of a call that begins. Returns a function that receives the final record, even if the call fails. */
  readonly begin: (begun: CallRecord) => Effect.Effect<(ended: CallRecord) => Effect.Effect<void>>
}

/** The service that receives the calls, looked up at each call. If it is null, calls are not reported. */
export const CallSink = Object.assign(
  Context.Reference<CallSink | null>("effect-rl/lm/CallSink", { defaultValue: () => null }),
  {
    /** Makes a sink that receives calls only when they have ended. */
    whole: (receive: (ended: CallRecord) => Effect.Effect<unknown>): CallSink => ({
      begin: () => Effect.succeed((ended) => Effect.asVoid(receive(ended))),
    }),
  },
)

const errorOf = (cause: Cause.Cause<LmError>): NonNullable<CallRecord["error"]> => {
  const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (failure !== undefined) {
    return { reason: failure.reason, message: failure.message, attempts: failure.attempts }
  }
  return Cause.hasInterruptsOnly(cause)
    ? { reason: "interrupted", message: "the call was interrupted", attempts: 0 }
    : { reason: "defect", message: "the call ended in a defect", attempts: 0 }
}

/** Reports every call to the `CallSink`, with its `CallContext`. */
export const logged: Middleware = (lm) => ({
  complete: (request) =>
    Effect.gen(function* () {
      const sink = yield* CallSink
      if (sink === null) return yield* lm.complete(request)
      const { phase, purpose, episode, step } = yield* CallContext
      const begun: CallRecord = {
        model: request.model,
        context: { phase, purpose, episode, step },
        request,
        response: null,
        error: null,
        startedAtMillis: yield* Clock.currentTimeMillis,
        endedAtMillis: null,
      }
      return yield* Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(sink.begin(begun), (end) =>
          Effect.onExit(restore(lm.complete(request)), (exit) =>
            Effect.flatMap(Clock.currentTimeMillis, (endedAtMillis) =>
              end({
                ...begun,
                endedAtMillis,
                ...(Exit.isSuccess(exit) ? { response: exit.value } : { error: errorOf(exit.cause) }),
              }),
            ),
          ),
        ),
      )
    }),
})
