/**
 * The report of an evaluation: for each agent the mean of every scorer with an interval, pass@k and similar values, means by
 * metadata, costs and failures; and comparisons of each agent with the first, task by task. It only computes.
 *
 * @example
 * ```ts
 * const report = Report.of(rows, { scorers: ["exact"], passAt: [1, 5], by: ["topic"] })
 * console.log(Report.text(report))
 * ```
 *
 * Means are over tasks: each counts once, whatever the number of its episodes. Failed episodes are counted, but are not
 * part of means.
 */
import { Schema } from "effect"
import { type Cell, short, table } from "../run/find/table.ts"
import { Interval, interval } from "../statistics/intervals.ts"
import { Paired, paired } from "../statistics/paired.ts"
import { bestOf, majority, mean, passAt, type Reducer } from "./reducers.ts"
import type { EpisodeRow } from "./rows.ts"

/** A mean over all tasks that have a value, with its confidence interval and the number of these tasks. */
export const Summary = Schema.Struct({ tasks: Schema.Int, ...Interval.fields })
export type Summary = typeof Summary.Type

export const AgentReport = Schema.Struct({
  agent: Schema.String,
  tasks: Schema.Int,
  episodes: Schema.Int,
  failed: Schema.Int,
  /** The means of the scorers that gave at least one score. */
  scores: Schema.Array(Schema.Struct({ scorer: Schema.String, ...Summary.fields })),
  /** Values that combine a task's episodes by the first scorer: pass@k, best of k, majority of k; `at` is k. */
  tries: Schema.Array(
    Schema.Struct({ reducer: Schema.Literals(["pass", "best", "majority"]), at: Schema.Int, ...Summary.fields }),
  ),
  /** The means of the first scorer over the tasks with the same value of a metadata key. */
  by: Schema.Array(Schema.Struct({ key: Schema.String, value: Schema.String, ...Summary.fields })),
  calls: Schema.Int,
  inputTokens: Schema.Int,
  outputTokens: Schema.Int,
  /** The cost in the currency of the prices; null if a model has no price. */
  cost: Schema.NullOr(Schema.Finite),
})
export type AgentReport = typeof AgentReport.Type

/**
 * The comparison of an agent (`right`) with the first one, or with one of another evaluation (`left`), by one scorer.
 */
export const ComparisonReport = Schema.Struct({
  left: Schema.String,
  right: Schema.String,
  scorer: Schema.String,
  ...Paired.fields,
})
export type ComparisonReport = typeof ComparisonReport.Type

export const Report = Schema.Struct({
  agents: Schema.Array(AgentReport),
  comparisons: Schema.Array(ComparisonReport),
})
export type Report = typeof Report.Type

export interface ReportOptions {
  /** The names of the scorers; the first one is used for pass@k and for the means by metadata. */
  readonly scorers: ReadonlyArray<string>
  /** The values of k for pass@k, if each task was played several times. */
  readonly passAt?: ReadonlyArray<number>
  /** The score of the first scorer at or above which an episode has passed. */
  readonly threshold?: number
  /** The metadata keys for which means are reported. */
  readonly by?: ReadonlyArray<string>
  readonly confidence?: number
  /** The seed of the resampling for intervals and tests. */
  readonly seed?: number
}

type Rows = ReadonlyArray<EpisodeRow>

/** Returns the function that identifies a task: by its id, or by its id and position if several tasks share an id. */
const taskKey = (rows: Rows): ((row: EpisodeRow) => string) => {
  const byId = Map.groupBy(rows, ({ env_id }) => env_id)
  const shared = [...byId.values()].some((group) => new Set(group.map(({ task }) => task)).size > 1)
  return ({ env_id, task }) => (shared ? `${env_id} at ${task}` : env_id)
}

/**
 * Combines the scores of each task's episodes into one value, by default their mean. Returns a map from task to value.
 */
export const perTask = (rows: Rows, scorer: string, reduce: Reducer = mean): ReadonlyMap<string, number> => {
  const values = new Map<string, number>()
  for (const [key, group] of Map.groupBy(rows, taskKey(rows))) {
    const samples = group.flatMap(({ scores, answer }) => {
      const value = scores[scorer]
      return value === undefined || value === null ? [] : [{ value, answer }]
    })
    const value = samples.length === 0 ? null : reduce(samples)
    if (value !== null) values.set(key, value)
  }
  return values
}

/** Makes the report of one agent from the rows of its episodes. */
const reportOf = (agent: string, rows: Rows, options: ReportOptions): AgentReport => {
  const { scorers, passAt: tries = [], threshold = 1, by = [], confidence = 0.95, seed = 0 } = options
  const [first] = scorers
  const summary = (some: Rows, scorer: string, reduce?: Reducer): ReadonlyArray<Summary> => {
    const values = [...perTask(some, scorer, reduce).values()]
    return values.length === 0 ? [] : [{ tasks: values.length, ...interval(values, { confidence, seed }) }]
  }
  const perTaskRows = Map.groupBy(rows, taskKey(rows))
  const repeats = [...perTaskRows.values()].reduce((most, { length }) => Math.max(most, length), 0)
  const several = repeats > 1
  const costs = rows.flatMap(({ cost }) => (cost === null ? [] : [cost]))
  const total = (of: (row: EpisodeRow) => number): number => rows.reduce((sum, row) => sum + of(row), 0)
  return {
    agent,
    tasks: perTaskRows.size,
    episodes: rows.length,
    failed: rows.filter(({ error }) => error !== null).length,
    scores: scorers.flatMap((scorer) => summary(rows, scorer).map((one) => ({ scorer, ...one }))),
    tries: !several
      ? []
      : [
          ...tries.flatMap((at) =>
            summary(rows, first, passAt(at, threshold)).map((one) => ({ reducer: "pass" as const, at, ...one })),
          ),
          // For scores of 0 and 1, the best of k is the same as pass@k.
          ...(rows.some(({ scores }) => (scores[first] ?? 0) % 1 !== 0)
            ? summary(rows, first, bestOf(repeats)).map((one) => ({ reducer: "best" as const, at: repeats, ...one }))
            : []),
          ...summary(rows, first, majority).map((one) => ({ reducer: "majority" as const, at: repeats, ...one })),
        ],
    by: by.flatMap((key) =>
      [...Map.groupBy(rows, ({ metadata }) => valueText(metadata[key]))]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .flatMap(([value, some]) => summary(some, first).map((one) => ({ key, value, ...one }))),
    ),
    calls: total(({ calls }) => calls),
    inputTokens: total(({ input_tokens }) => input_tokens),
    outputTokens: total(({ output_tokens }) => output_tokens),
    cost: costs.length < rows.length ? null : costs.reduce((sum, value) => sum + value, 0),
  }
}

const valueText = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined ? "(none)" : (JSON.stringify(value) ?? "(none)")

/** Compares the rows of two agents by every scorer that both have values for. */
export const compare = (
  left: { readonly name: string; readonly rows: Rows },
  right: { readonly name: string; readonly rows: Rows },
  { scorers, confidence, seed }: Pick<ReportOptions, "scorers" | "confidence" | "seed">,
): ReadonlyArray<ComparisonReport> =>
  scorers.flatMap((scorer) => {
    const comparison = paired(perTask(left.rows, scorer), perTask(right.rows, scorer), { confidence, seed })
    return comparison === null ? [] : [{ left: left.name, right: right.name, scorer, ...comparison }]
  })

/** Makes the report of all agents that have rows, in the order in which the agents first appear. */
export const of = (rows: Rows, options: ReportOptions): Report => {
  const agents = [...Map.groupBy(rows, ({ agent }) => agent)].map(([name, some]) => ({ name, rows: some }))
  const [first, ...others] = agents
  return {
    agents: agents.map(({ name, rows }) => reportOf(name, rows, options)),
    comparisons: others.flatMap((other) => compare(first, other, options)),
  }
}

/** Compares each agent of `rows` with the agent of the same name in `other`, or else with the first agent there. */
export const against = (
  other: Rows,
  rows: Rows,
  options: Pick<ReportOptions, "scorers" | "confidence" | "seed">,
): ReadonlyArray<ComparisonReport> => {
  const theirs = Map.groupBy(other, ({ agent }) => agent)
  const [first] = theirs.keys()
  return [...Map.groupBy(rows, ({ agent }) => agent)].flatMap(([agent, some]) => {
    const left = theirs.has(agent) ? agent : first
    const before = { name: `${left} (before)`, rows: theirs.get(left) ?? [] }
    return compare(before, { name: agent, rows: some }, options)
  })
}

const between = ({ low, high }: { readonly low: number; readonly high: number }): string =>
  `${rounded(low)} to ${rounded(high)}`
const rounded = (value: number): string =>
  Math.abs(value) >= 100 ? value.toFixed(1) : value.toFixed(Math.abs(value) >= 10 ? 2 : 3)

const labels = {
  pass: (at: number) => `pass@${at}`,
  best: (at: number) => `best of ${at}`,
  majority: (at: number) => `majority of ${at}`,
} as const

/** Formats a report as tables of plain text. */
export const text = (report: Report, { confidence = 0.95 }: Pick<ReportOptions, "confidence"> = {}): string => {
  const percent = `${Number((confidence * 100).toPrecision(4))} %`
  const rows = report.agents.flatMap(({ agent, scores, tries, by }): ReadonlyArray<ReadonlyArray<Cell>> => [
    ...scores.map((one) => [agent, one.scorer, rounded(one.mean), between(one), one.tasks]),
    ...tries.map((one) => [agent, labels[one.reducer](one.at), rounded(one.mean), between(one), one.tasks]),
    ...by.map((one) => [agent, `${one.key}=${one.value}`, rounded(one.mean), between(one), one.tasks]),
  ])
  const priced = report.agents.some(({ cost }) => cost !== null)
  const taken = report.agents.map((one) => [
    one.agent,
    one.episodes,
    one.failed,
    one.calls,
    one.inputTokens,
    one.outputTokens,
    ...(priced ? [one.cost === null ? null : Number(one.cost.toPrecision(4))] : []),
  ])
  const parts = [
    table(["agent", "score", "mean", percent, "tasks"], rows),
    table(
      ["agent", "episodes", "failed", "calls", "input tokens", "output tokens", ...(priced ? ["cost"] : [])],
      taken,
    ),
    ...(report.comparisons.length === 0 ? [] : [comparisonText(report.comparisons, { confidence })]),
  ]
  return parts.join("\n")
}

/**
 * Formats comparisons as a table. `higher` and `lower` count tasks (for tokens, lower is better). `p` is of McNemar's
 * exact test if all values are 0 or 1, and else of a permutation test.
 */
export const comparisonText = (
  comparisons: ReadonlyArray<ComparisonReport>,
  { confidence = 0.95 }: Pick<ReportOptions, "confidence"> = {},
): string =>
  table(
    [
      "compared",
      "score",
      "difference",
      `${Number((confidence * 100).toPrecision(4))} %`,
      "higher",
      "lower",
      "tasks",
      "p",
      "by",
    ],
    comparisons.map((one) => [
      `${one.right} − ${one.left}`,
      one.scorer,
      `${one.difference > 0 ? "+" : ""}${rounded(one.difference)}`,
      between(one),
      one.better,
      one.worse,
      one.tasks,
      one.p < 0.0001 ? "<0.0001" : short(one.p),
      one.test === "mcnemar" ? "McNemar" : "permutation",
    ]),
  )
