/**
 * Makes the spans of a trace: what calls models and tools, and how long it takes. Spans go to the `Tracer` of Effect that the
 * program provides, such as `OtlpTracer`. Without one, nobody could see them, so none are made.
 *
 * @example
 * ```ts
 * const lookUp = Effect.succeed("blue")
 * const answer = yield* inSpan(() => ({ name: "look_up", kind: "internal", attributes: { "app.key": "sky" } }), lookUp)
 * ```
 */
import { Cause, Clock, Context, Effect, Exit, Option, Tracer } from "effect"
import * as Headers from "effect/http/Headers"
import * as HttpTraceContext from "effect/http/HttpTraceContext"

/** Whether spans contain texts of prompts, answers and tools. They may be private, so they are left out by default. */
export const TraceContent = Context.Reference<boolean>("effect-rl/lm/TraceContent", { defaultValue: () => false })

export type Attributes = Readonly<Record<string, string | number | boolean | ReadonlyArray<string>>>

/** Describes a span. */
export interface SpanPlan<A, E> {
  readonly name: string
  readonly kind: Tracer.SpanKind
  readonly attributes: Attributes
  /** Whether the span begins a trace of its own, which only links to the span around it. */
  readonly isRoot?: boolean
  /** Returns further attributes at the end of the span. */
  readonly ended?: (exit: Exit.Exit<A, E>) => Attributes
}

/** Tells whether the program provides a tracer. */
export const isTraced: Effect.Effect<boolean> = Effect.map(Tracer.Tracer, (tracer) => tracer !== Tracer.nativeTracer)

const isTagged = (error: unknown): error is { readonly _tag: string } =>
  typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string"

/** Returns the kind of a failure: the reason of an `LmError`, or the tag of another error. */
const failureOf = (cause: Cause.Cause<unknown>): string => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (isTagged(error)) return "reason" in error && typeof error.reason === "string" ? error.reason : error._tag
  return Cause.hasInterruptsOnly(cause) ? "interrupted" : "defect"
}

/** Makes the failure that a span reports instead of the error, whose message may quote what a model or a server wrote. */
export const withoutTexts = (cause: Cause.Cause<unknown>): Exit.Exit<never, Error> => {
  const failure = new Error(failureOf(cause))
  failure.stack = ""
  return Exit.fail(failure)
}

const finish = <A, E>(
  span: Tracer.Span,
  exit: Exit.Exit<A, E>,
  { plan, content }: { readonly plan: SpanPlan<A, E>; readonly content: boolean },
): Effect.Effect<void> =>
  Effect.map(Clock.currentTimeNanos, (now) => {
    for (const [key, value] of Object.entries(plan.ended?.(exit) ?? {})) span.attribute(key, value)
    if (Exit.isSuccess(exit)) return
    if (Cause.hasInterruptsOnly(exit.cause)) return
    span.attribute("error.type", failureOf(exit.cause))
    // The first end counts: it replaces the one with the error itself.
    if (!content) span.end(now, withoutTexts(exit.cause))
  })

const currentSpan = Effect.map(Effect.serviceOption(Tracer.ParentSpan), Option.getOrUndefined)

/** Returns the options of a span that say how it belongs to the span around it. */
const placeOf = ({
  isRoot = false,
}: Pick<SpanPlan<never, never>, "isRoot">): Effect.Effect<Tracer.SpanOptionsNoTrace> =>
  Effect.map(currentSpan, (span) =>
    isRoot ? { root: true, links: span === undefined ? [] : [{ span, attributes: {} }] } : {},
  )

/** Runs an effect in a span, if the program provides a tracer. `planOf` is told whether the span may contain texts. */
export const inSpan = <A, E, R>(
  planOf: (options: { readonly content: boolean }) => SpanPlan<A, E>,
  effect: Effect.Effect<A, E, R>,
): Effect.Effect<A, E, R> =>
  Effect.flatMap(isTraced, (traced): Effect.Effect<A, E, R> => {
    if (!traced) return effect
    return Effect.flatMap(TraceContent, (content) => {
      const plan = planOf({ content })
      return Effect.flatMap(placeOf(plan), (place) =>
        Effect.useSpan(plan.name, { kind: plan.kind, attributes: plan.attributes, ...place }, (span) =>
          Effect.onExit(Effect.withParentSpan(effect, span, { captureStackTrace: false }), (exit) =>
            finish(span, exit, { plan, content }),
          ),
        ),
      )
    })
  })

/** Adds an event to the current span, if the program provides a tracer. */
export const addEvent = (name: string, attributes: Attributes): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (!(yield* isTraced)) return
    const span = yield* currentSpan
    if (span?._tag === "Span") span.event(name, yield* Clock.currentTimeNanos, { ...attributes })
  })

/** Returns the span of another program that a request names in its header `traceparent` (W3C Trace Context); null if it names none. */
export const spanOfRequest = (headers: Readonly<Record<string, string>>): Tracer.ExternalSpan | null =>
  Option.getOrNull(HttpTraceContext.w3c(Headers.fromInput(headers)))

/** Makes the span of another program the parent of the spans of an effect. */
export const underCaller = <A, E, R>(
  caller: Tracer.ExternalSpan | null,
  effect: Effect.Effect<A, E, R>,
): Effect.Effect<A, E, R> => (caller === null ? effect : Effect.withParentSpan(effect, caller))

/**
 * Returns the value of the header `traceparent` with which other programs add their spans to this trace; undefined if there is
 * no trace. If this program has no tracer, it is the value that another program has sent.
 */
export const traceparent: Effect.Effect<string | undefined> = Effect.gen(function* () {
  const parent = yield* currentSpan
  if (parent === undefined || (parent._tag === "Span" && !(yield* isTraced))) return undefined
  return `00-${parent.traceId.padStart(32, "0")}-${parent.spanId}-${parent.sampled ? "01" : "00"}`
})
