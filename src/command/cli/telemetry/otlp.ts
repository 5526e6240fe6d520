/** Exports telemetry by OTLP over HTTP, with Effect's own exporter. `telemetry.ts` loads this module only if it is needed. */
import { Cause, Config, ConfigProvider, Effect, Exit, Layer, Tracer } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as Otlp from "effect/observability/Otlp"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import { spanOfRequest, TraceContent, withoutTexts } from "../../../agents/lm/spans.ts"
import { usageError } from "../output/output.ts"
import { protocolOf, type TelemetryVariables } from "./variables.ts"

const isListed = (list: string, word: string): boolean =>
  list.split(",").some((item) => item.trim().toLowerCase() === word)

/** Replaces the errors with which spans end by their kind, because their messages may quote texts. */
const namingErrors = Layer.effect(
  Tracer.Tracer,
  Effect.map(Tracer.Tracer, (tracer) =>
    Tracer.make({
      ...tracer,
      span: (options) => {
        const span = tracer.span(options)
        const end = span.end.bind(span)
        span.end = (time, exit) =>
          end(time, Exit.isFailure(exit) && !isInterrupted(exit) ? withoutTexts(exit.cause) : exit)
        return span
      },
    }),
  ),
)

const isInterrupted = (exit: Exit.Failure<unknown, unknown>): boolean => Cause.hasInterruptsOnly(exit.cause)

/** Fails with the variable whose value the exporter cannot read. The message does not show the value, which may have a key. */
const refusedVariable = (cause: Cause.Cause<never>) => {
  const defect = Cause.squash(cause)
  if (!(defect instanceof Config.ConfigError)) return Effect.failCause(cause)
  const [name = "OTEL_*"] = /\bOTEL_\w+/.exec(defect.message) ?? []
  const expected = defect.message.match(/\bExpected .*$/gm)?.at(-1) ?? "Expected another value"
  return Effect.fail(usageError(`${name}: ${expected.replace("Expected", "expected")}`))
}

/** Makes the Layer that exports spans, metrics and logs as the variables of OpenTelemetry say. */
export const layer = (variables: TelemetryVariables) => {
  const { OTEL_PROPAGATORS: propagators = "tracecontext", TRACEPARENT } = variables
  const captured = variables["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] ?? ""
  const content = /^(true|span_only|span_and_event)$/i.test(captured)
  const parent = TRACEPARENT === undefined ? null : spanOfRequest({ traceparent: TRACEPARENT })
  const exporter = Otlp.layerFromConfig().pipe(
    Layer.provide(FetchHttpClient.layer),
    Layer.provide(
      protocolOf(variables) === "http/protobuf" ? OtlpSerialization.layerProtobuf : OtlpSerialization.layerJson,
    ),
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: variables }))),
    Layer.catchCause((cause) => Layer.effectDiscard(refusedVariable(cause))),
  )
  return Layer.mergeAll(
    content ? exporter : Layer.provideMerge(namingErrors, exporter),
    Layer.succeed(TraceContent)(content),
    Layer.succeed(HttpClient.TracerPropagationEnabled)(isListed(propagators, "tracecontext")),
    parent === null ? Layer.empty : Layer.parentSpan(parent),
  )
}
