/** Answers `GET /metrics` with the metrics of a server for Prometheus. */
import { Effect } from "effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { type PrometheusMetric, prometheusText, prometheusType } from "../../base/formats/prometheus.ts"
import type { EngineStatus } from "../inference/Engine.ts"
import type { ServerState } from "./ServerState.ts"

const one = (name: string, type: "counter" | "gauge", help: string, value: number): PrometheusMetric => ({
  name: `effect_serve_${name}`,
  type,
  help,
  samples: [{ labels: {}, value }],
})

const ofEngine = (
  { gate, maxAnswers, startedAtMillis }: ServerState,
  status: EngineStatus,
): ReadonlyArray<PrometheusMetric> => [
  one("start_time_seconds", "gauge", "When the server began, in seconds since 1970.", startedAtMillis / 1000),
  one("answers", "gauge", "Answers in progress or waiting.", gate.answering()),
  one("answers_limit", "gauge", "The largest number of answers in progress or waiting.", maxAnswers),
  one("running", "gauge", "Answers that are generated in the steps of the engine.", status.running),
  one("waiting", "gauge", "Answers that wait for the engine.", status.waiting),
  one("steps_total", "counter", "Steps of the engine.", status.steps),
  one("prompt_tokens_total", "counter", "Tokens of prompts.", status.promptTokens),
  one("cached_prompt_tokens_total", "counter", "Tokens of prompts that were in the cache.", status.cachedPromptTokens),
  one("generated_tokens_total", "counter", "Generated tokens.", status.generatedTokens),
  {
    name: "effect_serve_cache_pages",
    type: "gauge",
    help: "Pages of the cache by what they hold.",
    samples: Object.entries(status.pages).map(([state, value]) => ({ labels: { state }, value })),
  },
]

/** Answers `GET /metrics`. */
export const metricsPage = (state: ServerState) =>
  Effect.map(state.engine.status, (status) =>
    HttpServerResponse.text(prometheusText([...ofEngine(state, status), ...state.metrics.list()]), {
      contentType: prometheusType,
      headers: { "cache-control": "no-store" },
    }),
  )
