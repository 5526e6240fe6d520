/**
 * Collects the metrics of a run from the events in its event file, and merges points so that a chart can show them. Events
 * can be added while the run still writes. This file works in memory; `runMetrics.ts` reads the files.
 */
import type { DecodedEvent } from "../../../base/formats/tfevents.ts"
import { rounded } from "./Curve.ts"

/** The number of points that fit in a chart. Up to twice as many are kept, so that points are merged rarely. */
const mostPoints = 400

/** The largest number of metrics of a run. More metrics would make exports large, and nobody reads that many charts. */
const mostMetrics = 300

/** All metrics of a run as columns of numbers. */
export interface RunMetrics {
  /** The steps and times at which metrics were written, for the x axis. Metrics written together share an entry. */
  readonly places: ReadonlyArray<{
    readonly steps: ReadonlyArray<number>
    /** The times of the points in seconds since the run's start. */
    readonly time: ReadonlyArray<number>
  }>
  readonly metrics: ReadonlyArray<Metric>
  /** The number of metrics that are left out because the run has too many. */
  readonly leftOut: number
}

interface Metric {
  readonly name: string
  /** The index of the metric's entry in `places`. */
  readonly at: number
  readonly mean: ReadonlyArray<number>
  /** The lowest and the highest value that each point combines; absent if each point is one value. */
  readonly low?: ReadonlyArray<number>
  readonly high?: ReadonlyArray<number>
}

/** The points of one metric. Each is the mean of `stride` values; the last point may have fewer values so far. */
interface Series {
  stride: number
  steps: Array<number>
  time: Array<number>
  sums: Array<number>
  low: Array<number>
  high: Array<number>
  counts: Array<number>
}

/** The metrics that have been read so far; `addEvents` adds more. */
export interface MetricsTable {
  readonly series: Map<string, Series>
  readonly leftOut: Set<string>
  /** The wall-clock time of the first event, in seconds since 1970. */
  start: number | undefined
}

export const emptyMetrics = (): MetricsTable => ({ series: new Map(), leftOut: new Set(), start: undefined })

/** Adds the scalars of events in their order. It skips values that are not finite: a chart can't show them. */
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

/** Adds a value to the last point; if that point already has `stride` values, adds a new point. */
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

/** Merges each pair of neighbouring points into one point, which has the step and the time of the later one. */
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

/** Returns the metrics in the form that the page reads, sorted by name. */
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
