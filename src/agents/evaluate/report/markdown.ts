/**
 * Formats the result of an evaluation as Markdown, for the summary of a job on GitHub and for comments. Names of agents, tasks
 * and scorers come from configs and data sets, so every character that Markdown could interpret is escaped.
 *
 * @example
 * ```ts
 * markdown({ name: "capitals", report, confidence: 0.95, gates: Gate.score(report, { limit: 0.8 }) })
 * ```
 */
import type { FailureCounts } from "../../../base/statistics/failureCounts.ts"
import { markdownText } from "../../../base/text/text.ts"
import { type Cell, short } from "../../../run/find/table.ts"
import type { GateOutcome } from "./Gate.ts"
import {
  agreementTable,
  comparisonTable,
  type ComparisonReport,
  type Report,
  scoreTable,
  type TextTable,
  totalsTable,
} from "./Report.ts"

interface EvaluationToFormat {
  readonly name: string
  readonly report: Report
  /** The confidence level of the intervals. */
  readonly confidence: number
  readonly gates?: ReadonlyArray<GateOutcome>
  /** The comparisons with a baseline, besides those of the report. */
  readonly baseline?: ReadonlyArray<ComparisonReport>
  readonly failures?: FailureCounts
  /** Why the evaluation fails whatever its gates say, for the heading. */
  readonly problem?: string | undefined
  /** The folder of the run. */
  readonly runDir?: string
}

const cellOf = (value: Cell | undefined): string => {
  if (value === undefined || value === null) return "–"
  return typeof value === "number" ? short(value) : markdownText(String(value))
}

const tableOf = ({ headings, rows }: TextTable): string => {
  const line = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`
  const isNumber = headings.map((_, column) => rows.some((row) => typeof row[column] === "number"))
  return [
    line(headings.map(markdownText)),
    line(isNumber.map((right) => (right ? "--:" : "---"))),
    ...rows.map((row) => line(headings.map((_, column) => cellOf(row[column])))),
  ].join("\n")
}

/** Says whether the evaluation passed, or what failed; nothing if nothing was judged. */
const verdictOn = ({ gates = [], problem }: EvaluationToFormat): ReadonlyArray<string> => {
  const failed = gates.filter(({ passed }) => !passed).length
  const problems = [
    ...(failed === 0 ? [] : [`${failed} of ${gates.length} gates failed`]),
    ...(problem === undefined ? [] : [problem]),
  ]
  if (problems.length > 0) return [problems.join(", ")]
  return gates.length === 0 ? [] : ["passed"]
}

/** Formats an evaluation as Markdown: first the gates, then scores, comparisons, costs and the reasons of failures. */
export const markdown = (evaluation: EvaluationToFormat): string => {
  const { name, report, confidence, gates = [], baseline = [], failures = [], runDir } = evaluation
  const heading = `### Evaluation ${[name, ...verdictOn(evaluation)].map(markdownText).join(": ")}`
  const gateTable = {
    headings: ["gate", "result"],
    rows: gates.map(({ passed, message }) => [message, passed ? "passed" : "failed"]),
  }
  const agreements = agreementTable(report, { confidence })
  const compared = [...report.comparisons, ...baseline]
  const sections = [
    heading,
    ...(gates.length === 0 ? [] : [tableOf(gateTable)]),
    tableOf(scoreTable(report, { confidence })),
    ...(compared.length === 0 ? [] : [tableOf(comparisonTable(compared, { confidence }))]),
    ...(agreements.rows.length === 0 ? [] : [tableOf(agreements)]),
    tableOf(totalsTable(report)),
    ...(failures.length === 0
      ? []
      : [tableOf({ headings: ["failed episodes", "reason"], rows: failures.map((one) => [one.count, one.reason]) })]),
    ...(runDir === undefined ? [] : [markdownText(runDir)]),
  ]
  return `${sections.join("\n\n")}\n\n`
}
