/**
 * Defines the record of a trial, which is a line of `trials.jsonl` in a study's folder, and ranks trials. A trial is one
 * suggestion of settings, trained with one or several seeds. These are pure functions.
 */
import { Schema } from "effect"

/** Whether a larger or a smaller metric is better. */
export const MetricDirection = Schema.Literals(["maximize", "minimize"])
export type MetricDirection = typeof MetricDirection.Type

/** A point of a trial's learning curve: the mean return of the validations at a step, over the trial's seeds. */
export const TrialPoint = Schema.Struct({ step: Schema.Int, value: Schema.Finite })
export type TrialPoint = typeof TrialPoint.Type

/** One run of a trial. */
export const TrialRun = Schema.Struct({
  seed: Schema.Int,
  /** The run's folder, relative to the study's folder. */
  path: Schema.String,
  value: Schema.NullOr(Schema.Finite),
  steps: Schema.Int,
  digest: Schema.String,
})
export type TrialRun = typeof TrialRun.Type

/** A trial that has ended. The record contains no times, so that equal studies have equal records. */
export const Trial = Schema.Struct({
  trial: Schema.Int,
  /**
   * `pruned` means that the trial was stopped early because others were better; `failed` means that one of its runs has no
   * result.
   */
  state: Schema.Literals(["finished", "pruned", "failed"]),
  /** The mean of the metric over the seeds; null for a trial that failed. */
  value: Schema.NullOr(Schema.Finite),
  /** The reason why the trial was pruned or failed. */
  reason: Schema.NullOr(Schema.String),
  params: Schema.Record(Schema.String, Schema.Unknown),
  runs: Schema.Array(TrialRun),
  curve: Schema.Array(TrialPoint),
})
export type Trial = typeof Trial.Type

/** The facts about an ended trial that samplers and pruners use. */
export type EndedTrial = Pick<Trial, "trial" | "state" | "value" | "params" | "curve">

const stateOrder: Readonly<Record<EndedTrial["state"], number>> = { finished: 0, pruned: 1, failed: 2 }

/** Returns the last step of a trial's learning curve. */
const lastStep = ({ curve }: EndedTrial): number => curve.at(-1)?.step ?? 0

/**
 * Sorts trials from the best to the worst: first the finished trials by their values, then the pruned trials (those that were
 * stopped later come first), then the failed trials. Trials that are equally good keep the order of their numbers.
 */
export const ranked = <T extends EndedTrial>(
  trials: ReadonlyArray<T>,
  direction: MetricDirection,
): ReadonlyArray<T> => {
  const sign = direction === "maximize" ? 1 : -1
  const valueOf = ({ value }: EndedTrial): number => (value === null ? -Infinity : sign * value)
  const difference = (one: number, other: number): number => (one === other ? 0 : one - other)
  return [...trials].sort(
    (one, other) =>
      stateOrder[one.state] - stateOrder[other.state] ||
      (one.state === "pruned" ? lastStep(other) - lastStep(one) : 0) ||
      difference(valueOf(other), valueOf(one)) ||
      one.trial - other.trial,
  )
}

/** Returns the best finished trial; undefined if none has finished. */
export const bestOf = <T extends EndedTrial>(trials: ReadonlyArray<T>, direction: MetricDirection): T | undefined =>
  ranked(trials, direction).find(({ state }) => state === "finished")

/** Averages learning curves at the steps that all of them have. */
export const meanCurve = (curves: ReadonlyArray<ReadonlyArray<TrialPoint>>): ReadonlyArray<TrialPoint> => {
  const [first = [], ...others] = curves
  return first.flatMap(({ step, value }) => {
    const values = others.map((curve) => curve.find((point) => point.step === step)?.value)
    const all = [value, ...values].filter((one) => one !== undefined)
    return all.length < curves.length ? [] : [{ step, value: all.reduce((sum, one) => sum + one, 0) / all.length }]
  })
}
