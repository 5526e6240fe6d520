/**
 * Judges whether an evaluation is good enough, for tests and continuous integration. `score` compares the mean of a scorer
 * with a limit; `regression` judges the comparison with an earlier evaluation of the same tasks. Both respect the direction of
 * the scorer: for costs such as `tokens`, a limit is an upper one, and more is a regression. These are pure functions. The
 * command `effect eval` calls them, and so can tests.
 *
 * @example
 * ```ts
 * const [outcome] = Gate.score(report, { limit: 0.8 })
 * if (!outcome.passed) console.log(outcome.message) // mine: exact 0.75 (0.6 to 0.87), expected at least 0.8
 * ```
 */
import { Schema } from "effect"
import { short } from "../../../run/find/table.ts"
import { reaches, type ScoreDirection, usualDirection } from "./direction.ts"
import type { AgentReport, ComparisonReport, Report } from "./Report.ts"

/** Describes what a gate found for one agent. */
export const GateOutcome = Schema.Struct({
  gate: Schema.Literals(["score", "regression"]),
  agent: Schema.String,
  scorer: Schema.String,
  passed: Schema.Boolean,
  /** The limit of the mean, or the largest regression that is allowed. */
  limit: Schema.Finite,
  /** The mean with its interval, or for a regression the mean difference; null if nothing was scored. */
  value: Schema.NullOr(Schema.Struct({ mean: Schema.Finite, low: Schema.Finite, high: Schema.Finite })),
  /** The number of tasks that `value` is over. */
  tasks: Schema.Int,
  /** One line for people: the value, and what was expected. */
  message: Schema.String,
})
export type GateOutcome = typeof GateOutcome.Type

export interface GateOptions {
  /** The name of the scorer; the first scorer of the report by default. */
  readonly scorer?: string | undefined
  /** The agents that are judged; all by default. An agent of this list without a comparison fails the regression. */
  readonly agents?: ReadonlyArray<string>
  /**
   * Whether the whole interval must meet the limit. By default a mean on the right side of its limit passes, and a regression
   * fails only if the whole interval is beyond the limit.
   */
  readonly strict?: boolean
}

/** Returns the values of an interval such that higher ones are better. */
const upwards = ({ mean, low, high }: Interval, direction: ScoreDirection): Interval =>
  direction === "lower" ? { mean: -mean, low: -high, high: -low } : { mean, low, high }

interface Interval {
  readonly mean: number
  readonly low: number
  readonly high: number
}

const isJudged = (agent: string, { agents = [] }: GateOptions): boolean => agents.length === 0 || agents.includes(agent)

/** Says why a scorer without a direction can't be judged. */
const undirected = (scorer: string): string =>
  `${scorer} has no direction, so no value of it is too low or too high; add direction: higher or lower to its settings`

/**
 * Judges the mean of a scorer for each agent of a report. It passes if the mean is at least `limit`, or at most `limit` if
 * lower values are better. With `strict`, the whole confidence interval must be on that side. An agent without a score fails.
 */
export const score = (
  report: Pick<Report, "agents">,
  options: GateOptions & { readonly limit: number },
): ReadonlyArray<GateOutcome> =>
  report.agents
    .filter(({ agent }) => isJudged(agent, options))
    .map((agent) => scoreOf(agent, options.scorer ?? firstScorer(report), options))

const firstScorer = ({ agents }: Pick<Report, "agents">): string =>
  agents.flatMap(({ scores }) => scores.map(({ scorer }) => scorer))[0] ?? "score"

const scoreOf = (
  { agent, scores }: AgentReport,
  scorer: string,
  { limit, strict = false }: GateOptions & { readonly limit: number },
): GateOutcome => {
  const summary = scores.find((one) => one.scorer === scorer)
  const outcome = { gate: "score", agent, scorer, limit } as const
  if (summary === undefined) {
    const message = `${agent}: ${scorer} scored no episode, expected ${limitText(limit, usualDirection(scorer))}`
    return { ...outcome, passed: false, value: null, tasks: 0, message }
  }
  const { mean, low, high, tasks, direction } = summary
  const value = { mean, low, high }
  if (direction === "none")
    return { ...outcome, passed: false, value, tasks, message: `${agent}: ${undirected(scorer)}` }
  const sign = direction === "lower" ? -1 : 1
  const judged = upwards(value, direction)
  const passed = reaches(strict ? judged.low : judged.mean, sign * limit)
  const expected = `${limitText(limit, direction)}${strict ? " for the whole interval" : ""}`
  return { ...outcome, passed, value, tasks, message: `${agent}: ${scorer} ${shown(value)}, expected ${expected}` }
}

const limitText = (limit: number, direction: ScoreDirection): string =>
  `${direction === "lower" ? "at most" : "at least"} ${short(limit)}`

const shown = ({ mean, low, high }: Interval): string => `${short(mean)} (${short(low)} to ${short(high)})`

/**
 * Judges comparisons with an earlier evaluation by one scorer. A comparison fails if a regression by more than `limit` is
 * shown: if the whole interval of the difference is beyond it, and the difference is significant at the level of the interval.
 * With `strict`, it passes only if such a regression is ruled out: if no part of the interval is beyond it. It always fails if it
 * is over fewer tasks than can be significant, which are 6 at the confidence 0.95.
 *
 * Name the agents of the evaluation in `agents`: an agent whose episodes all failed has no comparison, and fails only if it is
 * named.
 */
export const regression = (
  comparisons: ReadonlyArray<ComparisonReport>,
  options: RegressionOptions,
): ReadonlyArray<GateOutcome> => {
  const scorer = options.scorer ?? comparisons[0]?.scorer ?? "score"
  const judged = comparisons.filter((one) => one.scorer === scorer && isJudged(one.right, options))
  const { agents = [], limit } = options
  const missing = agents.filter((agent) => !judged.some(({ right }) => right === agent))
  return [
    ...judged.map((one) => regressionOf(one, options)),
    ...missing.map((agent): GateOutcome => {
      const message = `${agent}: no task has a value of ${scorer} on both sides, expected a comparison`
      return { gate: "regression", agent, scorer, limit, passed: false, value: null, tasks: 0, message }
    }),
  ]
}

interface RegressionOptions extends GateOptions {
  readonly limit: number
  /** The confidence level of the comparisons' intervals; 0.95 by default. */
  readonly confidence?: number
}

/** Returns the smallest number of tasks that can be significant: if all of them change alike, the p-value is 2 / 2^tasks. */
const leastTasks = (confidence: number): number => Math.floor(Math.log2(2 / (1 - confidence))) + 1

/** Says what the interval of a difference, in which more is better, shows about a regression by more than `limit`. */
const verdictOn = (
  { low, high }: Interval,
  { limit, isSignificant }: { readonly limit: number; readonly isSignificant: boolean },
): "shown" | "ruled out" | "possible, but not shown" => {
  if (isSignificant && !reaches(high, -limit)) return "shown"
  return reaches(low, -limit) ? "ruled out" : "possible, but not shown"
}

const regressionOf = (
  { left, right, scorer, direction, difference, low, high, tasks, p }: ComparisonReport,
  { limit, strict = false, confidence = 0.95 }: RegressionOptions,
): GateOutcome => {
  const value = { mean: difference, low, high }
  const outcome = { gate: "regression", agent: right, scorer, limit, value, tasks } as const
  const failed = (reason: string): GateOutcome => ({ ...outcome, passed: false, message: `${right}: ${reason}` })
  if (direction === "none") return failed(undirected(scorer))
  const least = leastTasks(confidence)
  if (tasks < least) {
    const only = tasks === 1 ? "one task" : `${tasks} tasks`
    return failed(
      `${scorer} has a value on both sides for only ${only}; a regression can be shown with ${least} or more`,
    )
  }
  const verdict = verdictOn(upwards(value, direction), { limit, isSignificant: p < 1 - confidence })
  const passed = strict ? verdict === "ruled out" : verdict !== "shown"
  const change = direction === "lower" ? "rise" : "fall"
  const sign = difference > 0 ? "+" : ""
  const found = `${right}: ${scorer} ${sign}${shown(value)} against ${left}`
  const message = `${found}; a ${change} by more than ${short(limit)} is ${verdict}`
  return { ...outcome, passed, message }
}
