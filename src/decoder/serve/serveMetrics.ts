/** Counts the requests of a server and measures their durations. */
import { Clock, Effect } from "effect"
import { PrometheusHistogram, type PrometheusMetric } from "../../base/formats/prometheus.ts"

/** The upper bounds of durations in seconds. */
const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]

/** The routes that are counted by their names. All others count as `other`, so that clients cannot make up labels. */
const routes = [
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/responses",
  "/v1/embeddings",
  "/inference/v1/generate",
  "/v1/models",
  "/v1/load_lora_adapter",
  "/v1/unload_lora_adapter",
  "/tokenize",
  "/detokenize",
  "/health",
  "/metrics",
]

/** Returns the label of a request's route. */
const routeOf = (url: string): string => {
  const [path] = url.split("?", 1)
  return routes.find((route) => path === route || (route === "/v1/models" && path.startsWith(`${route}/`))) ?? "other"
}

/** The counts and durations of a server's requests since it began. */
export class ServeMetrics {
  /** The number of requests by route and status. */
  private readonly requests = new Map<string, { readonly labels: Record<string, string>; count: number }>()
  /** The seconds from a request to the beginning of its response. */
  private readonly responses = new Map<string, PrometheusHistogram>()
  /** The seconds from the start of an answer's generation to its end, also of answers that clients broke off. */
  readonly answers = new PrometheusHistogram(seconds)

  requested(url: string, status: number, duration: number): void {
    const labels = { route: routeOf(url), status: String(status) }
    const key = `${labels.route} ${labels.status}`
    const counted = this.requests.get(key) ?? { labels, count: 0 }
    counted.count++
    this.requests.set(key, counted)
    const histogram = this.responses.get(labels.route) ?? new PrometheusHistogram(seconds)
    histogram.observe(duration)
    this.responses.set(labels.route, histogram)
  }

  /** Returns the metrics of the requests. */
  list(): ReadonlyArray<PrometheusMetric> {
    return [
      {
        name: "effect_serve_requests_total",
        type: "counter",
        help: "Requests by route and status.",
        samples: [...this.requests.values()].map(({ labels, count }) => ({ labels, value: count })),
      },
      {
        name: "effect_serve_response_seconds",
        type: "histogram",
        help: "Seconds from a request to the beginning of its response; for a stream, to its first token.",
        samples: [...this.responses].flatMap(([route, histogram]) => histogram.samples({ route })),
      },
      {
        name: "effect_serve_answer_seconds",
        type: "histogram",
        help: "Seconds from the start of the answers of a request to their end.",
        samples: this.answers.samples({}),
      },
    ]
  }
}

/** Measures the time of the current request from now to its end, as that of an answer. */
export const timedAnswer = (metrics: ServeMetrics) =>
  Effect.flatMap(Clock.monotonicTimeNanos, (began) =>
    Effect.addFinalizer(() =>
      Effect.map(Clock.monotonicTimeNanos, (now) => metrics.answers.observe(Number(now - began) / 1e9)),
    ),
  )
