/** Computes and formats the results of a sweep: scores, and their interquartile mean (IQM) over the seeds. */
import { shownLike, shownScore, shownSpread } from "../../base/text/text.ts"
import { table } from "../../run/find/table.ts"
import { aggregate, aggregateCurves } from "../../base/statistics/statistics.ts"
import type { RunResult } from "../../run/RunResult.ts"
import type { Finished } from "../cli/run/finished.ts"
import type { PlannedRun } from "./plan.ts"

/** A run that has ended: with its result, or with a line that describes why it failed. */
export interface EndedRun {
  readonly run: PlannedRun
  readonly directory: string
  readonly outcome: Finished | { readonly problem: string }
}

/** Returns the mean return of the last validation, or of the last training episodes if there was no validation. */
export const scoreOf = ({ validation, meanReturn }: RunResult): number | null => validation?.meanReturn ?? meanReturn

export const scoreText = (result: RunResult): string => {
  const score = scoreOf(result)
  return score === null ? "no score" : shownScore(score)
}

/** Computes the metrics of runs that differ only in their seeds: for each seed, and aggregated over the seeds. */
export const summarise = (ended: ReadonlyArray<EndedRun>) => {
  const finished = ended.flatMap(({ outcome }) => ("result" in outcome ? [outcome] : []))
  const scores = finished.map(({ result }) => scoreOf(result)).filter((score) => score !== null)
  const curves = finished.map(({ curve }) => curve)
  return {
    seeds: ended.map(({ run, outcome, directory }) => {
      const { seed } = run.identity
      if (!("result" in outcome)) return { seed, failed: outcome.problem, directory }
      const { steps, wallSeconds, digest } = outcome.result
      return { seed, score: scoreOf(outcome.result), steps, wallSeconds, digest }
    }),
    score: scores.length === 0 ? null : aggregate(scores),
    curve: curves.length === 0 ? [] : aggregateCurves(curves),
  }
}

export type SweepMetrics = ReturnType<typeof summarise>

/** Returns the last line that `--seeds` without `--population` prints: the statistics of the scores over the seeds. */
export const lineOf = ({ score }: SweepMetrics): string => {
  if (score === null) return "no scores"
  const { iqm, low, high, mean, std, runs } = score
  const digits = shownLike(mean)
  return `IQM ${digits(iqm)} (95 %: ${digits(low)} to ${digits(high)}), mean ${shownSpread(mean, std)} over ${runs} seeds`
}

/** Formats a table with one row for each combination of the swept settings (`variables`). */
export const tableOf = (
  variables: ReadonlyArray<string>,
  rows: ReadonlyArray<{ readonly values: ReadonlyArray<string>; readonly metrics: SweepMetrics }>,
): string =>
  table(
    [...variables, "IQM", "95 %", "mean", "seeds"],
    rows.map(({ values, metrics: { score, seeds } }) => {
      const failed = seeds.filter((seed) => "failed" in seed).length
      const count = failed === 0 ? String(seeds.length) : `${seeds.length - failed}, ${failed} failed`
      if (score === null) return [...values, "–", "–", "–", count]
      const { iqm, low, high, mean, std } = score
      const digits = shownLike(mean)
      return [...values, digits(iqm), `${digits(low)} to ${digits(high)}`, shownSpread(mean, std), count]
    }),
  )
