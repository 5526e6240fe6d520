/**
 * What an evaluation comes to: for each agent the mean of every scorer with an interval, what several tries are worth,
 * parts by metadata, what it took and what failed; and each agent compared with the first, task by task.
 *
 * @example
 * ```ts
 * const report = Report.of(rows, { scorers: ["exact"], passAt: [1, 5], by: ["topic"] })
 * console.log(Report.text(report))
 * ```
 *
 * Means are over tasks, of which each counts once, whatever became of its repeats. Episodes that failed are counted, and
 * in no mean.
 */
import { Schema } from "effect"
import { type Cell, short, table } from "../run/find/table.ts"
import { Interval, interval } from "../statistics/intervals.ts"
import { Paired, paired } from "../statistics/paired.ts"
import { bestOf, majority, mean, passAt, type Reducer } from "./reducers.ts"
import type { EpisodeRow } from "./rows.ts"

/** A number of each task, over all tasks that have one. */
export const Summary = Schema.Struct({ tasks: Schema.Int, ...Interval.fields })
export type Summary = typeof Summary.Type

export const AgentReport = Schema.Struct({
  agent: Schema.String,
  tasks: Schema.Int,
  episodes: Schema.Int,
  failed: Schema.Int,
  /** Of each scorer that scored anything. */
  scores: Schema.Array(Schema.Struct({ scorer: Schema.String, ...Summary.fields })),
  /** What several tries of a task are worth by the first scorer; `at` is how many. */
  tries: Schema.Array(
    Schema.Struct({ reducer: Schema.Literals(["pass", "best", "majority"]), at: Schema.Int, ...Summary.fields }),
  ),
  /** The first scorer, over the tasks with the same value of a metadata key. */
  by: Schema.Array(Schema.Struct({ key: Schema.String, value: Schema.String, ...Summary.fields })),
  calls: Schema.Int,
  inputTokens: Schema.Int,
  outputTokens: Schema.Int,
  /** Null where a price isn't known. */
  cost: Schema.NullOr(Schema.Finite),
})
export type AgentReport = typeof AgentReport.Type

/** A later agent against the first, or against another evaluation's; by a scorer that both have. */
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

export interface Options {
  /** By name; the first is the one that tries, parts and comparisons look at. */
  readonly scorers: ReadonlyArray<string>
  /** Of pass@k and the best of k, where each task was played several times. */
  readonly passAt?: ReadonlyArray<number>
  /** From how much on an episode of the first scorer has passed. */
  readonly threshold?: number
  readonly by?: ReadonlyArray<string>
  readonly confidence?: number
  /** Of what is drawn for intervals and tests. */
  readonly seed?: number
}

type Rows = ReadonlyArray<EpisodeRow>

const groupsOf = <A>(items: ReadonlyArray<A>, keyOf: (item: A) => string): ReadonlyMap<string, ReadonlyArray<A>> =>
  Map.groupBy(items, keyOf)

/** Tasks are the same where they have the same id; where several share one, also the place. */
const taskKey = (rows: Rows): ((row: EpisodeRow) => string) => {
  const places = groupsOf(rows, ({ env_id }) => env_id)
  const shared = [...places.values()].some((those) => new Set(those.map(({ task }) => task)).size > 1)
  return ({ env_id, task }) => (shared ? `${env_id} at ${task}` : env_id)
}

/** A number of each task. */
export const perTask = (rows: Rows, scorer: string, reduce: Reducer = mean): ReadonlyMap<string, number> => {
  const values = new Map<string, number>()
  for (const [key, those] of groupsOf(rows, taskKey(rows))) {
    const samples = those.flatMap(({ scores, answer }) => {
      const value = scores[scorer]
      return value === undefined || value === null ? [] : [{ value, answer }]
    })
    const value = samples.length === 0 ? null : reduce(samples)
    if (value !== null) values.set(key, value)
  }
  return values
}

const reportOf = (agent: string, rows: Rows, options: Options): AgentReport => {
  const { scorers, passAt: tries = [], threshold = 1, by = [], confidence = 0.95, seed = 0 } = options
  const [first] = scorers
  const summary = (some: Rows, scorer: string, reduce?: Reducer): ReadonlyArray<Summary> => {
    const values = [...perTask(some, scorer, reduce).values()]
    return values.length === 0 ? [] : [{ tasks: values.length, ...interval(values, { confidence, seed }) }]
  }
  const perTaskRows = groupsOf(rows, taskKey(rows))
  const repeats = [...perTaskRows.values()].reduce((most, { length }) => Math.max(most, length), 0)
  const several = repeats > 1
  const known = rows.flatMap(({ cost }) => (cost === null ? [] : [cost]))
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
          // Of 0 and 1 the best is what pass@k is.
          ...(rows.some(({ scores }) => (scores[first] ?? 0) % 1 !== 0)
            ? summary(rows, first, bestOf(repeats)).map((one) => ({ reducer: "best" as const, at: repeats, ...one }))
            : []),
          ...summary(rows, first, majority).map((one) => ({ reducer: "majority" as const, at: repeats, ...one })),
        ],
    by: by.flatMap((key) =>
      [...groupsOf(rows, ({ metadata }) => valueText(metadata[key]))]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .flatMap(([value, some]) => summary(some, first).map((one) => ({ key, value, ...one }))),
    ),
    calls: total(({ calls }) => calls),
    inputTokens: total(({ input_tokens }) => input_tokens),
    outputTokens: total(({ output_tokens }) => output_tokens),
    cost: known.length < rows.length ? null : known.reduce((sum, value) => sum + value, 0),
  }
}

const valueText = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined ? "(none)" : (JSON.stringify(value) ?? "(none)")

/** Named rows against others: by every scorer that both have values of. */
export const compare = (
  left: { readonly name: string; readonly rows: Rows },
  right: { readonly name: string; readonly rows: Rows },
  { scorers, confidence, seed }: Pick<Options, "scorers" | "confidence" | "seed">,
): ReadonlyArray<ComparisonReport> =>
  scorers.flatMap((scorer) => {
    const how = { ...(confidence === undefined ? {} : { confidence }), ...(seed === undefined ? {} : { seed }) }
    const found = paired(perTask(left.rows, scorer), perTask(right.rows, scorer), how)
    return found === null ? [] : [{ left: left.name, right: right.name, scorer, ...found }]
  })

/** Of all agents that rows are of, in their order. */
export const of = (rows: Rows, options: Options): Report => {
  const agents = [...groupsOf(rows, ({ agent }) => agent)].map(([name, some]) => ({ name, rows: some }))
  const [first, ...others] = agents
  return {
    agents: agents.map(({ name, rows }) => reportOf(name, rows, options)),
    comparisons: others.flatMap((other) => compare(first, other, options)),
  }
}

/** Another evaluation's rows against these: agents of the same name if there are such, else all against its first. */
export const against = (
  other: Rows,
  rows: Rows,
  options: Pick<Options, "scorers" | "confidence" | "seed">,
): ReadonlyArray<ComparisonReport> => {
  const theirs = groupsOf(other, ({ agent }) => agent)
  const [first] = theirs.keys()
  return [...groupsOf(rows, ({ agent }) => agent)].flatMap(([agent, some]) => {
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

/** The tables of a report for people. */
export const text = (report: Report, { confidence = 0.95 }: Pick<Options, "confidence"> = {}): string => {
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

/** Comparisons for people, with the numbers of tasks whose value is higher and lower (of tokens, lower is better); `p` is by McNemar's exact test where all is 0 or 1, else by swapping signs. */
export const comparisonText = (
  comparisons: ReadonlyArray<ComparisonReport>,
  { confidence = 0.95 }: Pick<Options, "confidence"> = {},
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
