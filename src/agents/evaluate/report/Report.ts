/**
 * Computes the report of an evaluation from the rows of its episodes, and formats it as text. For each agent, it has the mean
 * of every scorer with a confidence interval, pass@k (the chance that at least one of k episodes passes) and similar values,
 * means by metadata, costs and failures; and it compares each agent with the first one, task by task. These are pure
 * functions. `execute.ts` and `Evaluations.ts` make reports; `effect eval` and the page show them.
 *
 * @example
 * ```ts
 * const report = Report.of(rows, { scorers: ["exact"], passAt: [1, 5], by: ["topic"] })
 * console.log(Report.text(report))
 * ```
 *
 * Means are over tasks: each task counts once, however many episodes it has. Failed episodes are counted, but do not
 * contribute to means.
 */
import { Schema } from "effect"
import { withDefault } from "../../../base/config/fields.ts"
import { type Cell, short, table } from "../../../run/find/table.ts"
import { Interval, interval } from "../../../base/statistics/intervals.ts"
import { Paired, paired } from "../../../base/statistics/paired.ts"
import { changeTexts, type ScoreDirection, directions, scorerText, usualDirection } from "./direction.ts"
import { agreementsOf, JudgeAgreement, type ScorerLabel } from "./judgeAgreement.ts"
import { bestOf, majority, mean, passAt, type Reducer } from "./reducers.ts"
import type { EpisodeRow } from "../rows.ts"

/** A mean over all tasks that have a value, with its confidence interval and the number of these tasks. */
export const Summary = Schema.Struct({ tasks: Schema.Int, ...Interval.fields })
export type Summary = typeof Summary.Type

/** The direction of the scorer. Reports of earlier versions have no directions; they get `none`. */
const directionOf = { direction: withDefault(Schema.Literals(directions), "none") }

export const AgentReport = Schema.Struct({
  agent: Schema.String,
  tasks: Schema.Int,
  episodes: Schema.Int,
  failed: Schema.Int,
  /** The means of the scorers that gave at least one score. */
  scores: Schema.Array(Schema.Struct({ scorer: Schema.String, ...directionOf, ...Summary.fields })),
  /** Means of pass@k, of the best of k scores or of the most frequent of k answers, by the first scorer; `at` is k. */
  tries: Schema.Array(
    Schema.Struct({ reducer: Schema.Literals(["pass", "best", "majority"]), at: Schema.Int, ...Summary.fields }),
  ),
  /** The mean of the first scorer for each value of a metadata key, over the tasks with this value. */
  by: Schema.Array(Schema.Struct({ key: Schema.String, value: Schema.String, ...Summary.fields })),
  /** The agreement of judges with the labels of the tasks, for judges whose settings name a label. */
  agreement: withDefault(Schema.Array(JudgeAgreement), []),
  calls: Schema.Int,
  inputTokens: Schema.Int,
  outputTokens: Schema.Int,
  /** The cost in the currency of the prices; null if a model has no price. */
  cost: Schema.NullOr(Schema.Finite),
})
export type AgentReport = typeof AgentReport.Type

/**
 * Compares two agents by one scorer, task by task. `right` is an agent of this evaluation; `left` is this evaluation's first
 * agent, or an agent of another evaluation. Differences are right minus left. `better` and `worse` count the tasks on which
 * the right agent's value is better or worse by the scorer's direction; without a direction, higher or lower.
 */
export const ComparisonReport = Schema.Struct({
  left: Schema.String,
  right: Schema.String,
  scorer: Schema.String,
  ...directionOf,
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
  /** The direction of each scorer by its name. By default higher values are better, except for costs such as `tokens`. */
  readonly directions?: ReadonlyMap<string, ScoreDirection>
  /** The values of k for pass@k, if each task was played several times. */
  readonly passAt?: ReadonlyArray<number>
  /** The smallest score of the first scorer with which an episode passes. */
  readonly threshold?: number
  /** The metadata keys for which means are reported. */
  readonly by?: ReadonlyArray<string>
  /** The labels that scorers are compared with, by the scorers' names. */
  readonly labels?: ReadonlyMap<string, ScorerLabel>
  readonly confidence?: number
  /** The seed of the resampling for intervals and tests. */
  readonly seed?: number
}

type EpisodeRows = ReadonlyArray<EpisodeRow>

/**
 * Returns a function that computes the key of a row's task: the task's id. If any two tasks have the same id, all keys also
 * have the task's position.
 */
const taskKey = (rows: EpisodeRows): ((row: EpisodeRow) => string) => {
  const byId = Map.groupBy(rows, ({ env_id }) => env_id)
  const shared = [...byId.values()].some((group) => new Set(group.map(({ task }) => task)).size > 1)
  return ({ env_id, task }) => (shared ? `${env_id} at ${task}` : env_id)
}

/**
 * Combines the scores that `scorer` gave to the episodes of a task into one value, by default their mean. Returns a map from
 * the tasks' keys to these values. Tasks that have no score, or too few for `reduce`, are left out.
 */
export const perTask = (rows: EpisodeRows, scorer: string, reduce: Reducer = mean): ReadonlyMap<string, number> => {
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
const reportOf = (agent: string, rows: EpisodeRows, options: ReportOptions): AgentReport => {
  const { scorers, passAt: passCounts = [], threshold = 1, by = [], confidence = 0.95, seed = 0 } = options
  const { directions } = options
  const [first] = scorers
  const summary = (some: EpisodeRows, scorer: string, reduce?: Reducer): ReadonlyArray<Summary> => {
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
    scores: scorers.flatMap((scorer) =>
      summary(rows, scorer).map((one) => ({
        scorer,
        direction: directions?.get(scorer) ?? usualDirection(scorer),
        ...one,
      })),
    ),
    tries: !several
      ? []
      : [
          ...passCounts.flatMap((at) =>
            summary(rows, first, passAt(at, threshold)).map((one) => ({ reducer: "pass" as const, at, ...one })),
          ),
          // For scores that are only 0 or 1, the best of k equals pass@k, so it is reported only if a score has a fraction.
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
    agreement: agreementsOf(rows, options.labels ?? new Map(), { confidence, seed }),
    calls: total(({ calls }) => calls),
    inputTokens: total(({ input_tokens }) => input_tokens),
    outputTokens: total(({ output_tokens }) => output_tokens),
    cost: costs.length < rows.length ? null : costs.reduce((sum, value) => sum + value, 0),
  }
}

const valueText = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined ? "(none)" : (JSON.stringify(value) ?? "(none)")

/** Compares two agents by each scorer that has scores for both of them on at least one common task. */
export const compare = (
  left: { readonly name: string; readonly rows: EpisodeRows },
  right: { readonly name: string; readonly rows: EpisodeRows },
  { scorers, directions, confidence, seed }: CompareOptions,
): ReadonlyArray<ComparisonReport> =>
  scorers.flatMap((scorer) => {
    const comparison = paired(perTask(left.rows, scorer), perTask(right.rows, scorer), { confidence, seed })
    if (comparison === null) return []
    const direction = directions?.get(scorer) ?? usualDirection(scorer)
    const { better: higher, worse: lower } = comparison
    const [better, worse] = direction === "lower" ? [lower, higher] : [higher, lower]
    return [{ left: left.name, right: right.name, scorer, direction, ...comparison, better, worse }]
  })

type CompareOptions = Pick<ReportOptions, "scorers" | "directions" | "confidence" | "seed">

/** Makes the report of all agents, in the order of their first rows. Each other agent is compared with the first one. */
export const of = (rows: EpisodeRows, options: ReportOptions): Report => {
  const agents = [...Map.groupBy(rows, ({ agent }) => agent)].map(([name, some]) => ({ name, rows: some }))
  const [first, ...others] = agents
  return {
    agents: agents.map(({ name, rows }) => reportOf(name, rows, options)),
    comparisons: others.flatMap((other) => compare(first, other, options)),
  }
}

/**
 * Compares each agent of `rows` with the agent of the same name in `other`, the rows of another evaluation. An agent
 * whose name is not in `other` is compared with the first agent of `other`.
 */
export const against = (
  other: EpisodeRows,
  rows: EpisodeRows,
  options: CompareOptions,
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

/** A table that is not formatted yet, as plain text or as Markdown. */
export interface TextTable {
  readonly headings: ReadonlyArray<string>
  readonly rows: ReadonlyArray<ReadonlyArray<Cell>>
}

type Confidence = Pick<ReportOptions, "confidence">

const percent = ({ confidence = 0.95 }: Confidence): string => `${Number((confidence * 100).toPrecision(4))} %`

/** Makes the table of all means with their intervals. */
export const scoreTable = ({ agents }: Pick<Report, "agents">, options: Confidence): TextTable => ({
  headings: ["agent", "score", "mean", percent(options), "tasks"],
  rows: agents.flatMap(({ agent, scores, tries, by }): ReadonlyArray<ReadonlyArray<Cell>> => [
    ...scores.map((one) => [agent, one.scorer, rounded(one.mean), between(one), one.tasks]),
    ...tries.map((one) => [agent, labels[one.reducer](one.at), rounded(one.mean), between(one), one.tasks]),
    ...by.map((one) => [agent, `${one.key}=${one.value}`, rounded(one.mean), between(one), one.tasks]),
  ]),
})

/** Makes the table of episodes, calls, tokens and, if any model has a price, costs. */
export const totalsTable = ({ agents }: Pick<Report, "agents">): TextTable => {
  const priced = agents.some(({ cost }) => cost !== null)
  return {
    headings: ["agent", "episodes", "failed", "calls", "input tokens", "output tokens", ...(priced ? ["cost"] : [])],
    rows: agents.map((one) => [
      one.agent,
      one.episodes,
      one.failed,
      one.calls,
      one.inputTokens,
      one.outputTokens,
      ...(priced ? [one.cost === null ? null : Number(one.cost.toPrecision(4))] : []),
    ]),
  }
}

/** Makes the table of the agreement of judges with labels; it has no rows if no judge has a label. */
export const agreementTable = ({ agents }: Pick<Report, "agents">, options: Confidence): TextTable => ({
  headings: ["judge", "label", "agent", "agreement", "kappa", percent(options), "answers", "tasks"],
  rows: agents.flatMap(({ agent, agreement }) =>
    agreement.map(({ scorer, label, agreement: share, kappa, low, high, pairs, items }) => [
      scorer,
      label,
      agent,
      rounded(share),
      kappa === null ? null : rounded(kappa),
      low === null || high === null ? null : between({ low, high }),
      pairs,
      items,
    ]),
  ),
})

const formatted = ({ headings, rows }: TextTable): string => table(headings, rows)

/**
 * Formats a report as plain-text tables: scores, then episodes and costs, then comparisons and the agreement of judges with
 * labels if there are any.
 */
export const text = (report: Report, options: Confidence = {}): string =>
  [
    formatted(scoreTable(report, options)),
    formatted(totalsTable(report)),
    ...(report.comparisons.length === 0 ? [] : [comparisonText(report.comparisons, options)]),
    ...[agreementTable(report, options)].filter(({ rows }) => rows.length > 0).map(formatted),
  ].join("\n")

/**
 * Makes the table of comparisons. The columns `better` and `worse` count the tasks on which the right agent is better or
 * worse than the left one, by the scorer's direction. `p` is the p-value of McNemar's exact test if all values are 0 or 1,
 * otherwise of a permutation test; the column `by` names the test.
 */
export const comparisonTable = (comparisons: ReadonlyArray<ComparisonReport>, options: Confidence): TextTable => ({
  headings: ["compared", "score", "difference", percent(options), "better", "worse", "tasks", "p", "by"],
  rows: comparisons.map((one) => [
    `${one.right} − ${one.left}`,
    scorerText(one),
    `${one.difference > 0 ? "+" : ""}${rounded(one.difference)}`,
    between(one),
    ...changeTexts(one),
    one.tasks,
    one.p < 0.0001 ? "<0.0001" : short(one.p),
    one.test === "mcnemar" ? "McNemar" : "permutation",
  ]),
})

/** Formats comparisons as a plain-text table. */
export const comparisonText = (comparisons: ReadonlyArray<ComparisonReport>, options: Confidence = {}): string =>
  formatted(comparisonTable(comparisons, options))
