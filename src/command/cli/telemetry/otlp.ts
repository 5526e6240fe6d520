/** Exports telemetry by OTLP over HTTP, with Effect's own exporter. `telemetry.ts` loads this module only if it is needed. */
import { ConfigProvider, Layer } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as Otlp from "effect/observability/Otlp"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import { spanOfRequest, TraceContent } from "../../../agents/lm/spans.ts"
import type { TelemetryVariables } from "./variables.ts"

const isListed = (list: string, word: string): boolean =>
  list.split(",").some((item) => item.trim().toLowerCase() === word)

/** Makes the Layer that exports spans, metrics and logs as the variables of OpenTelemetry say. */
export const layer = (variables: TelemetryVariables) => {
  const {
    OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
    OTEL_PROPAGATORS: propagators = "tracecontext",
    TRACEPARENT,
  } = variables
  const content = variables["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] ?? ""
  const parent = TRACEPARENT === undefined ? null : spanOfRequest({ traceparent: TRACEPARENT })
  return Layer.mergeAll(
    Otlp.layerFromConfig().pipe(
      Layer.provide(FetchHttpClient.layer),
      Layer.provide(protocol === "http/protobuf" ? OtlpSerialization.layerProtobuf : OtlpSerialization.layerJson),
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: variables }))),
    ),
    Layer.succeed(TraceContent)(/^(true|span_only|span_and_event)$/i.test(content)),
    Layer.succeed(HttpClient.TracerPropagationEnabled)(isListed(propagators, "tracecontext")),
    parent === null ? Layer.empty : Layer.parentSpan(parent),
  )
}
