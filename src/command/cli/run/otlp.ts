/** Sends telemetry over HTTP. trainOnce.ts loads it only if `OTEL_EXPORTER_OTLP_ENDPOINT` is set. */
import { Layer } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Otlp from "effect/observability/Otlp"

/** Makes a Layer that sends a run's metrics, and spans (the times of its main parts), to an OpenTelemetry collector. */
export const layer = (baseUrl: string) =>
  Otlp.layerJson({ baseUrl, resource: { serviceName: "effect-rl" } }).pipe(Layer.provide(FetchHttpClient.layer))
