import { Effect, Metric } from "effect"
import type { Sink } from "./Recorder.ts"
import { scalarsOf } from "./scalars.ts"

/**
 * The sink (a receiver of a run's events) that records each number of updates and validations as a gauge of Effect's metrics,
 * such as `effect_rl.losses.policy_loss`, with the run's path, name, env, algorithm and seed as attributes. Any exporter of
 * Effect's metrics can send them, such as `Otlp` or `PrometheusMetrics`. Validations and checkpoints are also spans of
 * Effect's tracer; this needs no sink.
 *
 * @example
 * ```ts
 * import { FetchHttpClient } from "effect/http"
 * import { Otlp } from "effect/observability"
 *
 * training.pipe(
 *   Effect.provide(Recorder.layer(telemetry)),
 *   Effect.provide(Otlp.layerJson({ baseUrl: "http://localhost:4318" }).pipe(Layer.provide(FetchHttpClient.layer))),
 * )
 * ```
 */
export const telemetry: Sink = ({ directory }, { name, env, algorithm, seed }) =>
  Effect.sync(() => {
    const attributes = { run: directory, name, env, algorithm, seed: String(seed) }
    const gauges = new Map<string, Metric.Gauge<number>>()
    const gaugeOf = (key: string): Metric.Gauge<number> => {
      const gauge = gauges.get(key) ?? Metric.gauge(`effect_rl.${key.replaceAll("/", ".")}`, { attributes })
      gauges.set(key, gauge)
      return gauge
    }
    return {
      emit: Effect.fnUntraced(function* (events) {
        for (const event of events) {
          const scalars = scalarsOf(event)
          if (scalars === undefined) continue
          yield* Metric.update(gaugeOf("step"), scalars.step)
          for (const [key, value] of Object.entries(scalars.values)) yield* Metric.update(gaugeOf(key), value)
        }
      }),
      flush: Effect.void,
    }
  })
