/**
 * Combines the curves of several runs into a band: a line with its confidence interval. In this file, a place is a value on
 * the x axis. These are pure functions with a fixed seed for resampling; the server and the page use them.
 */
import { valueAt } from "../../../base/statistics/interpolation.ts"
import { bootstrap, interquartileMean, meanOf } from "../../../base/statistics/resampling.ts"
import { type Axis, type Curve, rounded } from "./Curve.ts"

export type Band = ReturnType<typeof bandOf>

/** The largest number of places in a band, since a chart can't show more. */
const mostPlaces = 200

/** The largest number of runs from which a band is computed, since reading the files of more runs takes too long. */
export const mostRunsInABand = 2000

/**
 * Computes the mean and the interquartile mean of several runs' curves, with their intervals, at the places where any
 * run was measured (at evenly spaced places, if there are many). A run counts at each place between its first and its
 * last measurement, by linear interpolation. After its last measurement its value is unknown, so it doesn't count
 * there. The points therefore have two parts:
 *
 * - the first `shared` points, which at least half of the runs reach;
 * - the points after these, which only the longer runs reach. They don't represent the group, so a chart shows them
 *   without the interval.
 *
 * One run of 100,000 steps and two of 30,000, measured every 10,000, have places at 10,000 … 100,000 and `shared` 3.
 */
export const bandOf = (all: ReadonlyArray<Curve>, axis: Axis) => {
  const curves = all.filter((curve) => curve[axis].length > 0 && curve[axis].every(Number.isFinite))
  const atPlaces = placesOf(curves.map((curve) => curve[axis])).map((x) => ({
    x,
    values: curves.flatMap((curve) => valueAt(curve[axis], curve.mean, x) ?? []),
  }))
  const isShared = ({ values }: (typeof atPlaces)[number]): boolean => values.length * 2 >= curves.length
  const lastShared = atPlaces.findLastIndex(isShared)
  const shared = atPlaces.slice(0, lastShared + 1).filter(isShared)
  const longer = lastShared < 0 ? [] : atPlaces.slice(lastShared + 1).filter(({ values }) => values.length > 0)
  const points = [...shared, ...longer].map(({ x, values }) => ({ x, ...centres(values) }))
  const column = (name: keyof (typeof points)[number]): ReadonlyArray<number> =>
    points.map((point) => rounded(point[name]))
  return {
    x: column("x"),
    /** The number of runs with any measurement. If fewer than half of them reach any place, all columns are empty. */
    of: curves.length,
    shared: shared.length,
    /** The number of runs that reach each place. */
    runs: column("runs"),
    mean: column("mean"),
    /** The bounds of 95 % intervals, computed by resampling the runs. */
    meanLow: column("meanLow"),
    meanHigh: column("meanHigh"),
    iqm: column("iqm"),
    iqmLow: column("iqmLow"),
    iqmHigh: column("iqmHigh"),
  }
}

/**
 * Returns the places where any run was measured, if they are few enough for a chart. Otherwise it returns evenly spaced
 * places: half of `mostPlaces` up to the last place that half of the runs reach, and at most as many after it. So even if one
 * run is very long, enough places remain for the shorter runs.
 */
const placesOf = (columns: ReadonlyArray<ReadonlyArray<number>>): ReadonlyArray<number> => {
  const union = new Set<number>()
  for (const column of columns) for (const x of column) union.add(x)
  const places = [...union].sort((a, b) => a - b)
  if (places.length <= mostPlaces) return places
  const ends = columns.map((column) => column[column.length - 1]).sort((a, b) => b - a)
  const [start, sharedEnd, end] = [places[0], ends[Math.ceil(ends.length / 2) - 1], ends[0]]
  const count = mostPlaces / 2
  const shared = evenPlaces(start, sharedEnd, count)
  const step = (sharedEnd - start) / count
  const rest = end === sharedEnd ? 0 : Math.min(count, Math.max(1, Math.round((end - sharedEnd) / step)))
  // If half of the runs end at the place where they begin, the first part has only one place.
  return [...new Set([start, ...shared, ...evenPlaces(sharedEnd, end, rest)])]
}

/**
 * Returns `count` evenly spaced places after `from`. The last one is exactly `to`, because a rounding error there could
 * exclude a run.
 */
const evenPlaces = (from: number, to: number, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, index) => (index === count - 1 ? to : from + ((to - from) * (index + 1)) / count))

/** Computes the mean and the interquartile mean of the runs' values at one place, with 95 % intervals. */
const centres = (values: ReadonlyArray<number>) => {
  // With hundreds of runs, fewer resamples give an interval that looks the same.
  const resamples = Math.max(50, Math.min(400, Math.round(8000 / values.length)))
  const interval = (statistic: (of: ReadonlyArray<number>) => number): readonly [number, number] =>
    values.length === 1 ? [values[0], values[0]] : bootstrap(values, statistic, { resamples })
  const [meanLow, meanHigh] = interval(meanOf)
  const [iqmLow, iqmHigh] = interval(interquartileMean)
  return {
    runs: values.length,
    mean: meanOf(values),
    meanLow,
    meanHigh,
    iqm: interquartileMean(values),
    iqmLow,
    iqmHigh,
  }
}
