/**
 * Makes the result of an evaluation from the rows of its episodes: the report, the validations and the digest. The evaluations
 * that we play (`execute.ts`), and those that other programs played, have it.
 */
import { Effect, Schema } from "effect"
import { sha256 } from "../../base/text/sha256.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { FailureCounts } from "../../base/statistics/failureCounts.ts"
import { countFailures } from "../episode/rollouts/Outcome.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import { evaluationOf, summaryOf, type ValidationOutcome } from "../../run/evaluation.ts"
import * as Layout from "../../run/Layout.ts"
import { ValidationSummary } from "../../run/RunResult.ts"
import type { EvaluationSettings } from "./EvaluationConfig.ts"
import * as Report from "./report/Report.ts"
import { csv, type EpisodeRow } from "./rows.ts"
import { taskProblem, withIdsOf } from "./report/sameTasks.ts"
import type { Scorer } from "./Scorer.ts"

/** The result of an evaluation, and the content of its `metrics.json`. */
export const EvaluationResult = Schema.Struct({
  runDir: Schema.String,
  /** The number of env steps over all episodes. */
  steps: Schema.Int,
  episodes: Schema.Int,
  failed: Schema.Int,
  /** The failed episodes by their reason; left out if there are none. */
  failures: Schema.optionalKey(FailureCounts),
  /** The env scores of the first agent, in the form of a training's validation; null if there are none. */
  validation: Schema.NullOr(ValidationSummary),
  report: Report.Report,
  /** The confidence level of the report's intervals. */
  confidence: Schema.Finite,
  /** The SHA-256 over all rows, without times and retries. Equal digests mean equal results. */
  digest: Schema.String,
  wallSeconds: Schema.Finite,
})
export type EvaluationResult = typeof EvaluationResult.Type

/** The parts of an evaluation on which its result depends, besides the rows. */
interface EvaluationParts {
  readonly settings: Pick<EvaluationSettings, "passAt" | "repeats" | "passThreshold" | "by" | "confidence" | "seed">
  readonly scorers: ReadonlyArray<Pick<Scorer, "name" | "direction" | "timed" | "label">>
  readonly contestants: ReadonlyArray<{ readonly name: string }>
  readonly other: ReadonlyArray<EpisodeRow> | null
}

/** Returns the episodes of an agent that did not fail, in the same form as a training's validation. */
export const scoredEpisodes = (rows: ReadonlyArray<EpisodeRow>, agent: string): ValidationOutcome["episodes"] =>
  rows
    .filter((row) => row.agent === agent && row.error === null)
    .map(({ score, steps, terminated, truncated }) => ({ return: score, length: steps, terminated, truncated }))

/**
 * Encodes a row for the digest, without values that vary between equal runs: times, retries, and the scores named in `timed`.
 */
const timeless = (
  { duration_ms: _duration, retries: _retries, content: _content, scores, ...row }: EpisodeRow,
  timed: ReadonlySet<string>,
): string => JSON.stringify({ ...row, scores: Object.entries(scores).filter(([name]) => !timed.has(name)) })

/** Writes `table.csv`, and returns the contents of `metrics.json` (with report and digest) and of `return.json`. */
export const resultOf = Effect.fnUntraced(function* (
  { settings, scorers, contestants, other }: EvaluationParts,
  rows: ReadonlyArray<EpisodeRow>,
) {
  const { files, seconds } = yield* CurrentRun
  const options: Report.ReportOptions = {
    scorers: scorers.map(({ name }) => name),
    directions: new Map(scorers.map(({ name, direction }) => [name, direction])),
    labels: new Map(scorers.flatMap(({ name, label }) => (label === undefined ? [] : [[name, label] as const]))),
    passAt: settings.passAt ?? [settings.repeats],
    threshold: settings.passThreshold,
    by: settings.by,
    confidence: settings.confidence,
    seed: settings.seed,
  }
  const own = Report.of(rows, options)
  const before = other === null ? null : withIdsOf(rows, other)
  const problem = before === null ? undefined : taskProblem(before, rows)
  if (problem !== undefined) yield* Effect.logWarning(`compare_to: nothing is compared, because ${problem}`)
  const compared = before === null || problem !== undefined ? [] : Report.against(before, rows, options)
  const report = { ...own, comparisons: [...own.comparisons, ...compared] }
  const failures = rows.flatMap(({ error }) => error ?? [])
  const timed = new Set(scorers.filter((one) => one.timed).map(({ name }) => name))
  const evaluations = contestants.map(({ name }, agentIndex) =>
    evaluationOf(agentIndex, { episodes: scoredEpisodes(rows, name) }),
  )
  yield* files.write(Layout.evaluation.table, csv(rows))
  const metrics: EvaluationResult = {
    runDir: files.directory,
    steps: rows.reduce((sum, { steps }) => sum + steps, 0),
    episodes: rows.length,
    failed: failures.length,
    ...(failures.length === 0 ? {} : { failures: countFailures(failures) }),
    validation: summaryOf(evaluations[0]),
    report,
    confidence: settings.confidence,
    digest: yield* sha256(utf8.encode(rows.map((row) => timeless(row, timed)).join("\n"))),
    wallSeconds: yield* seconds,
  }
  return { metrics, evaluations }
})
