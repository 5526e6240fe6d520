/**
 * Collects the metrics of a run from its event file, thinned to what a chart shows, and keeps them up to date while the run
 * writes more.
 *
 * @example
 * ```ts
 * const table = emptyMetrics()
 * addEvents(table, decode(bytes).events)
 * metricsOf(table).metrics.map(({ name }) => name) // ["losses/entropy", "losses/policy_loss"]
 * ```
 */
import type { DecodedEvent } from "../formats/tfevents.ts"
import { rounded } from "./rounded.ts"

/** A chart has room for this many points. Up to twice as many are kept, so that points are merged rarely. */
const mostPoints = 400

/** A run whose metrics have more names than this is not meant to be read by people, and would make exports large. */
const mostMetrics = 300

/** What several runs can be compared by: all metrics of a run as columns of numbers. */
export interface RunMetrics {
  /** Metrics that are written together share their places, so these are listed once. */
  readonly places: ReadonlyArray<{
    readonly steps: ReadonlyArray<number>
    /** Seconds since the run's start. */
    readonly time: ReadonlyArray<number>
  }>
  readonly metrics: ReadonlyArray<Metric>
  /** How many metrics are left out because there are too many. */
  readonly leftOut: number
}

export interface Metric {
  readonly name: string
  /** The index of its places. */
  readonly at: number
  readonly mean: ReadonlyArray<number>
  /** The lowest and highest value behind each point; absent where each point is one value. */
  readonly low?: ReadonlyArray<number>
  readonly high?: ReadonlyArray<number>
}

/** Points of one metric, each the mean of `stride` values. The last one may still lack some. */
interface Series {
  stride: number
  steps: Array<number>
  time: Array<number>
  sums: Array<number>
  low: Array<number>
  high: Array<number>
  counts: Array<number>
}

/** The metrics that have been read so far, for `addEvents` to extend. */
export interface MetricsTable {
  readonly series: Map<string, Series>
  readonly leftOut: Set<string>
  /** Wall clock of the first event, in seconds. */
  start: number | undefined
}

export const emptyMetrics = (): MetricsTable => ({ series: new Map(), leftOut: new Set(), start: undefined })

/** Adds the scalars of events, in the order of the file. Values that are not finite have no place in a chart. */
export const addEvents = (table: MetricsTable, events: ReadonlyArray<DecodedEvent>): void => {
  for (const { step, wallSeconds, scalars } of events) {
    table.start ??= wallSeconds
    for (const name in scalars) {
      if (!Number.isFinite(scalars[name])) continue
      const series = seriesOf(table, name)
      if (series !== undefined) addPoint(series, step, wallSeconds - table.start, scalars[name])
    }
  }
}

const seriesOf = ({ series, leftOut }: MetricsTable, name: string): Series | undefined => {
  const existing = series.get(name)
  if (existing !== undefined) return existing
  if (series.size >= mostMetrics) {
    leftOut.add(name)
    return undefined
  }
  const added: Series = { stride: 1, steps: [], time: [], sums: [], low: [], high: [], counts: [] }
  series.set(name, added)
  return added
}

const addPoint = (series: Series, step: number, seconds: number, value: number): void => {
  const { steps, time, sums, low, high, counts } = series
  const last = counts.length - 1
  if (last >= 0 && counts[last] < series.stride) {
    steps[last] = step
    time[last] = seconds
    sums[last] += value
    low[last] = Math.min(low[last], value)
    high[last] = Math.max(high[last], value)
    counts[last]++
    return
  }
  for (const [column, entry] of [[steps, step], [time, seconds], [sums, value], [low, value], [high, value], [counts, 1]] as const) column.push(entry) // prettier-ignore
  if (counts.length > 2 * mostPoints) mergePairs(series)
}

/** Makes one point of each two, at the place of the later one. */
const mergePairs = (series: Series): void => {
  const merge = (column: ReadonlyArray<number>, both: (a: number, b: number) => number): Array<number> =>
    Array.from({ length: Math.ceil(column.length / 2) }, (_, index) =>
      2 * index + 1 < column.length ? both(column[2 * index], column[2 * index + 1]) : column[2 * index],
    )
  const later = (_: number, b: number): number => b
  const sum = (a: number, b: number): number => a + b
  series.stride *= 2
  series.steps = merge(series.steps, later)
  series.time = merge(series.time, later)
  series.sums = merge(series.sums, sum)
  series.low = merge(series.low, Math.min)
  series.high = merge(series.high, Math.max)
  series.counts = merge(series.counts, sum)
}

/** The metrics as the page reads them, by name. */
export const metricsOf = (table: MetricsTable): RunMetrics => {
  const places = new Map<string, { readonly index: number; readonly columns: RunMetrics["places"][number] }>()
  const metrics = [...table.series]
    .map(([name, { stride, steps, time, sums, low, high, counts }]): Metric => {
      const columns = { steps: [...steps], time: time.map(rounded) }
      const key = JSON.stringify(columns)
      const { index } = places.get(key) ?? { index: places.size }
      places.set(key, { index, columns })
      const mean = sums.map((sum, at) => rounded(sum / counts[at]))
      return { name, at: index, mean, ...(stride === 1 ? {} : { low: low.map(rounded), high: high.map(rounded) }) }
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  return { places: [...places.values()].map(({ columns }) => columns), metrics, leftOut: table.leftOut.size }
}
