/**
 * Tells of each call of a model: who was asked what, for which step of which episode, and what came of it.
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
import { type Middleware, CallContext } from "../Lm.ts"
import type { LmError } from "../LmError.ts"

/** A call that began, or one that ended: then there is a response or an error, and never both. */
export const CallRecord = Schema.Struct({
  /** As it was asked for. */
  model: Schema.String,
  context: Schema.Struct({
    phase: Schema.Union([
      Schema.TaggedStruct("train", {}),
      Schema.TaggedStruct("validation", { seenEpisodes: Schema.Int }),
      Schema.TaggedStruct("default", {}),
    ]),
    purpose: Schema.Literals(["action", "reflection", "judgement"]),
    episode: Schema.Int,
    step: Schema.Int,
  }),
  request: LmRequest,
  /** With its usage, and how many attempts it took. */
  response: Schema.NullOr(Completion),
  error: Schema.NullOr(
    Schema.Struct({
      /** Of an `LmError`, or `interrupted`. */
      reason: Schema.String,
      message: Schema.String,
      attempts: Schema.Int,
    }),
  ),
  startedAtMillis: Schema.Finite,
  /** Null until it ended. */
  endedAtMillis: Schema.NullOr(Schema.Finite),
})
export type CallRecord = typeof CallRecord.Type

export interface CallSink {
  /** Told when a call begins; gives what is told when it ends, whichever way. */
  readonly begin: (begun: CallRecord) => Effect.Effect<(ended: CallRecord) => Effect.Effect<void>>
}

/** Where calls are told of, looked up at each call; null: nowhere. */
export const CallSink = Object.assign(
  Context.Reference<CallSink | null>("effect-rl/lm/CallSink", { defaultValue: () => null }),
  {
    /** One that waits until calls end. */
    whole: (take: (ended: CallRecord) => Effect.Effect<unknown>): CallSink => ({
      begin: () => Effect.succeed((ended) => Effect.asVoid(take(ended))),
    }),
  },
)

const errorOf = (cause: Cause.Cause<LmError>): NonNullable<CallRecord["error"]> => {
  const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (failure !== undefined) {
    return { reason: failure.reason, message: failure.message, attempts: failure.attempts }
  }
  const interrupted = Cause.hasInterruptsOnly(cause)
  return {
    reason: interrupted ? "interrupted" : "defect",
    message: interrupted ? "the call was interrupted" : "the call ended in a defect",
    attempts: 0,
  }
}

/** Tells the `CallSink` of every call, with its `CallContext`. */
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
