import { Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { Otlp } from "effect/observability"

/** Makes a Layer that exports metrics, and spans of the run's coarse stages, to an OpenTelemetry collector. */
export const layer = (baseUrl: string) =>
  Otlp.layerJson({ baseUrl, resource: { serviceName: "effect-rl" } }).pipe(Layer.provide(FetchHttpClient.layer))
