/** Sends telemetry over HTTP. It is loaded only if `OTEL_EXPORTER_OTLP_ENDPOINT` is set. */
import { Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { Otlp } from "effect/observability"

/** Makes a Layer that exports metrics, and spans of the main stages of a run, to an OpenTelemetry collector. */
export const layer = (baseUrl: string) =>
  Otlp.layerJson({ baseUrl, resource: { serviceName: "effect-rl" } }).pipe(Layer.provide(FetchHttpClient.layer))
