/** Sends telemetry over HTTP. It is loaded only if `OTEL_EXPORTER_OTLP_ENDPOINT` is set. */
import { Layer } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Otlp from "effect/observability/Otlp"

/** Makes a Layer that exports metrics, and spans of the main stages of a run, to an OpenTelemetry collector. */
export const layer = (baseUrl: string) =>
  Otlp.layerJson({ baseUrl, resource: { serviceName: "effect-rl" } }).pipe(Layer.provide(FetchHttpClient.layer))
