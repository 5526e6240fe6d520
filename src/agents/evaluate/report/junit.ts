/**
 * Formats an evaluation as JUnit XML, which Jenkins, GitHub's and GitLab's test reports and most others read. Each agent is a
 * suite, and each task a test: an error if an episode of it failed, a failure if its mean by the first scorer is below the
 * score of a pass, skipped if nothing was scored. Gates are a suite of their own.
 *
 * @example
 * ```ts
 * junit(rows, { name: "capitals", scorer: "exact", direction: "higher", threshold: 1 })
 * ```
 */
import { short } from "../../../run/find/table.ts"
import { reaches, type ScoreDirection } from "./direction.ts"
import type { GateOutcome } from "./Gate.ts"
import * as Reducers from "./reducers.ts"
import type { EpisodeRow } from "../rows.ts"

interface JunitOptions {
  /** The name of the evaluation. */
  readonly name: string
  /** The scorer that decides whether a task has passed, with its direction: without `higher`, only errors count. */
  readonly scorer: string
  readonly direction: ScoreDirection
  /** The smallest score with which a task has passed. */
  readonly threshold: number
  readonly gates?: ReadonlyArray<GateOutcome>
}

/** The longest text of an answer or an error, in characters. */
const longestText = 2000

/** Escapes a text for XML. Characters that XML 1.0 doesn't allow are replaced, and long texts end with `…`. */
const escaped = (text: string): string => {
  const short = text.length <= longestText ? text : `${text.slice(0, longestText)}…`
  return short
    .toWellFormed()
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd")
    .replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
    .replace(/[\r\n\t]/g, (character) => `&#${character.charCodeAt(0)};`)
}

interface TestCase {
  readonly name: string
  readonly seconds: number
  readonly outcome: "passed" | "failure" | "error" | "skipped"
  readonly message: string
  /** The type of the failure or error. */
  readonly type: string
  readonly details: string
}

const passed = { outcome: "passed", message: "", type: "", details: "" } as const

/** Makes the test of a task, from the rows of its episodes. */
const testOf = (rows: ReadonlyArray<EpisodeRow>, { scorer, direction, threshold }: JunitOptions): TestCase => {
  const [{ env_id: name }] = rows
  const seconds = rows.reduce((sum, { duration_ms }) => sum + duration_ms, 0) / 1000
  const failed = rows.flatMap(({ error }) => error ?? [])
  if (failed.length > 0) {
    const message = `${failed.length} of ${rows.length} episodes failed: ${failed[0].message}`
    const details = failed.map(({ error, message }) => `${error}: ${message}`).join("\n")
    return { name, seconds, outcome: "error", message, type: failed[0].error, details }
  }
  const samples = rows.flatMap(({ scores, answer }) => {
    const value = scores[scorer]
    return value === undefined || value === null ? [] : [{ value, answer }]
  })
  const mean = Reducers.mean(samples)
  const details = rows.map(({ answer, target }) => `answer: ${answer ?? "(none)"}\nright answer: ${target ?? "(none)"}`)
  if (mean === null) return { name, seconds, ...passed, outcome: "skipped", message: `${scorer} had nothing to score` }
  if (direction !== "higher" || reaches(mean, threshold)) return { name, seconds, ...passed }
  const message = `${scorer} ${short(mean)}, expected at least ${short(threshold)}`
  return { name, seconds, outcome: "failure", message, type: scorer, details: details.join("\n\n") }
}

const timeOf = (seconds: number): string => Math.max(0, seconds).toFixed(3)

const caseText = (suite: string, { name, seconds, outcome, message, type, details }: TestCase): string => {
  const start = `    <testcase name="${escaped(name)}" classname="${escaped(suite)}" time="${timeOf(seconds)}"`
  if (outcome === "passed") return `${start}/>`
  if (outcome === "skipped") return `${start}><skipped message="${escaped(message)}"/></testcase>`
  const attributes = `message="${escaped(message)}" type="${escaped(type)}"`
  return `${start}><${outcome} ${attributes}>${escaped(details)}</${outcome}></testcase>`
}

const count = (tests: ReadonlyArray<TestCase>, outcome: TestCase["outcome"]): number =>
  tests.filter((one) => one.outcome === outcome).length
const secondsOf = (tests: ReadonlyArray<TestCase>): number => tests.reduce((sum, { seconds }) => sum + seconds, 0)

const totals = (tests: ReadonlyArray<TestCase>): string =>
  `tests="${tests.length}" failures="${count(tests, "failure")}" errors="${count(tests, "error")}"`

const suiteText = (name: string, tests: ReadonlyArray<TestCase>): ReadonlyArray<string> => [
  `  <testsuite name="${escaped(name)}" ${totals(tests)} skipped="${count(tests, "skipped")}" time="${timeOf(secondsOf(tests))}">`,
  ...tests.map((one) => caseText(name, one)),
  "  </testsuite>",
]

const testOfGate = ({ gate, agent, scorer, message, passed: isPassed }: GateOutcome): TestCase => {
  const name = `${gate} of ${agent} by ${scorer}`
  return isPassed
    ? { name, seconds: 0, ...passed }
    : { name, seconds: 0, outcome: "failure", message, type: gate, details: message }
}

/** Formats the episodes of an evaluation, and its gates, as JUnit XML. */
export const junit = (rows: ReadonlyArray<EpisodeRow>, options: JunitOptions): string => {
  const suites = [...Map.groupBy(rows, ({ agent }) => agent)].map(([agent, some]) => ({
    name: `${options.name}: ${agent}`,
    tests: [...Map.groupBy(some, ({ task }) => task).values()].map((ofTask) => testOf(ofTask, options)),
  }))
  const gates = (options.gates ?? []).map(testOfGate)
  const all = gates.length === 0 ? suites : [{ name: `${options.name}: gates`, tests: gates }, ...suites]
  const tests = all.flatMap((suite) => suite.tests)
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="${escaped(options.name)}" ${totals(tests)} time="${timeOf(secondsOf(tests))}">`,
    ...all.flatMap((suite) => suiteText(suite.name, suite.tests)),
    "</testsuites>",
    "",
  ].join("\n")
}
