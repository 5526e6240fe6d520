/**
 * Writes metrics in the text format 0.0.4 of Prometheus, which its server and most collectors read. The caller chooses the names;
 * values of labels may be anything, also texts of somebody else.
 *
 * @example
 * ```ts
 * const seconds = new PrometheusHistogram([0.1, 1, 10])
 * seconds.observe(0.4)
 * prometheusText([
 *   { name: "jobs", type: "gauge", help: "Jobs by state.", samples: [{ labels: { state: "running" }, value: 2 }] },
 *   { name: "job_seconds", type: "histogram", help: "How long jobs took.", samples: seconds.samples({}) },
 * ])
 * ```
 */
import { Sha256 } from "../text/sha256.ts"

/** One line of a metric. */
interface PrometheusSample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  /** The end of the name, for the lines of a histogram. */
  readonly suffix?: "_bucket" | "_sum" | "_count"
}

export interface PrometheusMetric {
  /** The name: letters, digits and `_`, with `_total` at the end of a counter's. */
  readonly name: string
  readonly type: "counter" | "gauge" | "histogram"
  readonly help: string
  readonly samples: ReadonlyArray<PrometheusSample>
}

/** The media type of the text. */
export const prometheusType = "text/plain; version=0.0.4; charset=utf-8"

/** The largest number of characters of a label's value. */
const mostCharacters = 300

/** The largest number of samples of a metric. */
const mostSamples = 10_000

const escapedHelp = (text: string): string => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")

/** Cuts a long value. It ends with a hash of the whole value, because samples with equal labels would damage the metric. */
const cut = (text: string): string => {
  if (text.length <= mostCharacters) return text
  const hash = new Sha256()
  hash.update(new TextEncoder().encode(text))
  return `${text.slice(0, mostCharacters)}…${hash.hex().slice(0, 16)}`
}

const escapedValue = (text: string): string =>
  escapedHelp(cut(text).toWellFormed())
    // Some readers take a carriage return for the end of a line.
    .replaceAll("\r", " ")
    .replaceAll('"', '\\"')

const numberText = (value: number): string => {
  if (Number.isNaN(value)) return "NaN"
  if (Number.isFinite(value)) return String(value)
  return value > 0 ? "+Inf" : "-Inf"
}

const labelsText = (labels: Readonly<Record<string, string>>): string => {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapedValue(value)}"`)
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`
}

/** Encodes metrics. A metric without samples is left out, as are the samples of a metric after its first 10,000. */
export const prometheusText = (metrics: ReadonlyArray<PrometheusMetric>): string =>
  metrics
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, type, help, samples }) => {
      const lines = samples
        .slice(0, mostSamples)
        .map(({ labels, value, suffix = "" }) => `${name}${suffix}${labelsText(labels)} ${numberText(value)}\n`)
      return `# HELP ${name} ${escapedHelp(help)}\n# TYPE ${name} ${type}\n${lines.join("")}`
    })
    .join("")

/** Counts values by upper bounds, such as the durations of requests. */
export class PrometheusHistogram {
  private readonly bounds: ReadonlyArray<number>
  /** The number of values up to each bound that are above the bound before it, and of those above all bounds. */
  private readonly counts: Array<number>
  private sum = 0

  constructor(bounds: ReadonlyArray<number>) {
    this.bounds = bounds
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  observe(value: number): void {
    const index = this.bounds.findIndex((bound) => value <= bound)
    this.counts[index < 0 ? this.bounds.length : index]++
    this.sum += value
  }

  /** Returns the lines of the histogram: its buckets, which count all values up to their bounds, its sum and its count. */
  samples(labels: Readonly<Record<string, string>>): ReadonlyArray<PrometheusSample> {
    let count = 0
    const buckets = this.counts.map((own, index): PrometheusSample => {
      count += own
      return { labels: { ...labels, le: numberText(this.bounds[index] ?? Infinity) }, value: count, suffix: "_bucket" }
    })
    return [...buckets, { labels, value: this.sum, suffix: "_sum" }, { labels, value: count, suffix: "_count" }]
  }
}
