import { Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { Otlp } from "effect/observability"

/** Metrics, and the spans of validations and checkpoints, to a collector of OpenTelemetry's. */
export const layer = (baseUrl: string) =>
  Otlp.layerJson({ baseUrl, resource: { serviceName: "effect-rl" } }).pipe(Layer.provide(FetchHttpClient.layer))
