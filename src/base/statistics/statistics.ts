/**
 * Computes statistics over trainings (runs) that differ only in their seed: the interquartile mean (IQM), which one
 * lucky or unlucky run hardly moves, and its confidence interval (Agarwal et al. 2021, arXiv:2108.13264).
 *
 * @example
 * ```ts
 * interquartileMean([0, 480, 490, 500]) // 485
 * aggregate([480, 490, 500, 210, 495]) // { iqm: 488.33, low: …, high: …, mean: 435, std: …, runs: 5 }
 * ```
 */
import { Schema } from "effect"
import { valueAt } from "./interpolation.ts"
import { bootstrap, deviationOf, interquartileMean, meanOf, quantile, thinned } from "./resampling.ts"
import { highest, lowest } from "./extremes.ts"

export const Aggregate = Schema.Struct({
  runs: Schema.Int,
  iqm: Schema.Finite,
  /** The lower end of the 95 % confidence interval of the IQM, by resampling the runs. */
  low: Schema.Finite,
  high: Schema.Finite,
  mean: Schema.Finite,
  /** The population standard deviation, which divides by n. */
  std: Schema.Finite,
  median: Schema.Finite,
})
export type Aggregate = typeof Aggregate.Type

/** Computes the statistics of several runs, from one value per run. Throws a RangeError if there are no values. */
export const aggregate = (values: ReadonlyArray<number>): Aggregate => {
  if (values.length === 0) throw new RangeError("aggregate: there are no runs")
  const [low, high] = bootstrap(values, interquartileMean)
  const sorted = Float64Array.from(values).sort()
  return {
    runs: values.length,
    iqm: interquartileMean(values),
    low,
    high,
    mean: meanOf(values),
    std: deviationOf(values),
    median: quantile(sorted, 0.5),
  }
}

/** A point of a learning curve: the statistics over the runs at this step. */
export const CurvePoint = Schema.Struct({ step: Schema.Int, ...Aggregate.fields })

/** Curves that were measured at different steps are combined at this many steps at most. */
const mostSteps = 300

/**
 * Combines learning curves of several runs over the steps that all of them cover: a point for each step at which one of
 * them has an evaluation, where the others are interpolated linearly. No point if the curves cover no common step.
 */
export const aggregateCurves = (
  curves: ReadonlyArray<ReadonlyArray<{ readonly step: number; readonly value: number }>>,
): ReadonlyArray<typeof CurvePoint.Type> => {
  const columns = curves.map((curve) => ({
    steps: curve.map(({ step }) => step),
    values: curve.map(({ value }) => value),
  }))
  const first = highest(columns.map(({ steps }) => steps[0] ?? Infinity))
  const last = lowest(columns.map(({ steps }) => steps.at(-1) ?? -Infinity))
  const all = [...new Set(columns.flatMap(({ steps }) => steps))].sort((a, b) => a - b)
  const common = all.filter((step) => step >= first && step <= last)
  const isEven = columns.every(({ steps }) => steps.filter((step) => step >= first && step <= last).length === common.length) // prettier-ignore
  return (isEven ? common : thinned(common, mostSteps)).map((step) => ({
    step,
    ...aggregate(columns.flatMap(({ steps, values }) => valueAt(steps, values, step) ?? [])),
  }))
}
