/**
 * Curves of several runs as one, with how far it can be trusted: what is drawn as a line in a band.
 *
 * Of a filtered group in an exported site the page computes it with this very file.
 */
import { bootstrap, interquartileMean, meanOf } from "../experiment/resampling.ts"
import type { Axis, Curve } from "./curve.ts"
import { rounded } from "./rounded.ts"

/** Columns over `x`. */
export interface Band {
  readonly x: ReadonlyArray<number>
  /** Of how many runs it is; where `x` is empty none of its places has half of them. */
  readonly of: number
  /** How many runs have got there. */
  readonly runs: ReadonlyArray<number>
  readonly mean: ReadonlyArray<number>
  /** 95 % intervals, by resampling the runs. */
  readonly meanLow: ReadonlyArray<number>
  readonly meanHigh: ReadonlyArray<number>
  readonly iqm: ReadonlyArray<number>
  readonly iqmLow: ReadonlyArray<number>
  readonly iqmHigh: ReadonlyArray<number>
}

/** At most so many points where runs weren't measured at the same places. */
const gridPoints = 100

/**
 * Where all runs were measured at the same places, the band has these; else even ones, between a run's own points on
 * straight lines. It goes as far as half of the runs do.
 */
export const bandOf = (all: ReadonlyArray<Curve>, axis: Axis): Band => {
  const curves = all.filter((curve) => curve[axis].length > 0 && curve[axis].every(Number.isFinite))
  const places = commonPlaces(curves.map((curve) => curve[axis]))
  const points = places.flatMap((x) => {
    const values = curves.flatMap((curve) => valueAt(curve[axis], curve.mean, x) ?? [])
    return values.length === 0 || values.length * 2 < curves.length ? [] : [{ x, ...centres(values) }]
  })
  const column = (name: keyof (typeof points)[number]): ReadonlyArray<number> =>
    points.map((point) => rounded(point[name]))
  return {
    x: column("x"),
    of: curves.length,
    runs: column("runs"),
    mean: column("mean"),
    meanLow: column("meanLow"),
    meanHigh: column("meanHigh"),
    iqm: column("iqm"),
    iqmLow: column("iqmLow"),
    iqmHigh: column("iqmHigh"),
  }
}

const commonPlaces = (columns: ReadonlyArray<ReadonlyArray<number>>): ReadonlyArray<number> => {
  const [first, ...others] = columns
  if (first === undefined) return []
  const same = others.every((other) => other.length === first.length && other.every((x, index) => x === first[index]))
  if (same) return first
  const start = columns.reduce((least, column) => Math.min(least, column[0]), Infinity)
  const end = columns.reduce((most, column) => Math.max(most, column[column.length - 1]), -Infinity)
  const longest = columns.reduce((most, column) => Math.max(most, column.length), 2)
  const count = Math.min(gridPoints, longest)
  return Array.from({ length: count }, (_, index) => start + ((end - start) * index) / (count - 1))
}

/** On the straight line between the points at either side; undefined before the first and after the last. */
const valueAt = (xs: ReadonlyArray<number>, ys: ReadonlyArray<number>, x: number): number | undefined => {
  if (x < xs[0] || x > xs[xs.length - 1]) return undefined
  let low = 0
  let high = xs.length - 1
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (xs[middle] <= x) low = middle
    else high = middle
  }
  if (xs[high] <= x) return ys[high]
  return ys[low] + ((ys[high] - ys[low]) * (x - xs[low])) / (xs[high] - xs[low] || 1)
}

const centres = (values: ReadonlyArray<number>) => {
  // Hundreds of runs need fewer resamples for an interval that looks the same.
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
