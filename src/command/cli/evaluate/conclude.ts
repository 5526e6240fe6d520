/**
 * Ends `effect eval` for a finished evaluation: judges its gates, writes the summary and the JUnit file, prints the tables, and
 * fails if a gate or too many episodes failed.
 */
import { dirname, join, resolve } from "node:path"
import { Effect, FileSystem, Option } from "effect"
import { isPlain, type Plain, toCamelCase } from "../../../base/config/Config.ts"
import { makeFolder, systemMessage } from "../../../base/files/files.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { table } from "../../../run/find/table.ts"
import * as Layout from "../../../run/Layout.ts"
import type { EvaluationResult } from "../../../agents/evaluate/result.ts"
import { CommandError } from "../../CommandError.ts"
import { writeFile } from "../export/folder.ts"
import { usageError, writeJson, writeOut } from "../output/output.ts"
import { readYaml } from "../userCode/yamlFile.ts"
import { failuresProblem } from "./failures.ts"
import type { EvalFlags } from "./flags.ts"
import { firstScorer, type Gates, gateProblem, judge, type Judgement } from "./gates.ts"

interface Conclusion {
  readonly gates: Gates
  /** Formats the tables. */
  readonly text: (result: EvaluationResult) => Effect.Effect<string>
}

/** Reports a finished evaluation, and fails if it isn't good enough. */
export const conclude = Effect.fnUntraced(function* (
  input: EvalFlags,
  result: EvaluationResult,
  { gates, text }: Conclusion,
) {
  const { quiet, json } = input
  const saved = toCamelCase(yield* readYaml(join(result.runDir, Layout.config)))
  const config = isPlain(saved) ? saved : {}
  const problem = gateProblem(gates, config)
  if (problem !== undefined) return yield* usageError(problem)
  const judgement = yield* judge(gates, { result, config, quiet })
  if (json) yield* writeJson(judgement.gates.length === 0 ? result : { ...result, gates: judgement.gates })
  else if (!quiet) yield* writeOut(`${yield* text(result)}${gateText(judgement)}`)
  const tooMany = Option.toArray(failuresProblem(result, input.maxFailures))
  yield* writeReports(input, result, { config, judgement, tooManyFailed: tooMany.length > 0 })
  const failed = judgement.gates.filter(({ passed }) => !passed)
  const problems = [
    ...(failed.length === 0
      ? []
      : [
          `${failed.length} of ${judgement.gates.length} gates failed: ${failed.map(({ message }) => message).join("; ")}`,
        ]),
    ...tooMany,
  ]
  const { error } = judgement
  if (error !== undefined) return yield* usageError([...problems, error.message].join("; "))
  if (problems.length > 0) return yield* CommandError.failed(problems.join("; "))
})

/** Formats the gates as a table, after the tables of the evaluation. */
const gateText = ({ gates }: Judgement): string =>
  gates.length === 0
    ? ""
    : `\n${table(
        ["gate", "result"],
        gates.map(({ message, passed }) => [message, passed ? "passed" : "failed"]),
      )}`

interface ReportedParts {
  readonly config: Plain
  readonly judgement: Judgement
  readonly tooManyFailed: boolean
}

/** Writes the files of `--summary` and `--junit`. */
const writeReports = Effect.fnUntraced(function* (
  { summary, junit }: EvalFlags,
  result: EvaluationResult,
  { config, judgement, tooManyFailed }: ReportedParts,
) {
  const name = typeof config.name === "string" ? config.name : "evaluation"
  const { report, confidence, failures = [], runDir, failed = 0, episodes } = result
  const problem = tooManyFailed ? `${failed} of ${episodes} episodes failed` : undefined
  if (Option.isSome(summary)) {
    const { markdown } = yield* Effect.promise(() => import("../../../agents/evaluate/report/markdown.ts"))
    const { gates, comparisons: baseline } = judgement
    yield* writeSummary(
      summary.value,
      markdown({ name, report, confidence, gates, baseline, failures, problem, runDir }),
    )
  }
  if (Option.isSome(junit)) {
    const { junit: junitOf } = yield* Effect.promise(() => import("../../../agents/evaluate/report/junit.ts"))
    const { readRows } = yield* Effect.promise(() => import("../../../agents/evaluate/Evaluations.ts"))
    const scorer = firstScorer(config)
    const summaries = report.agents.flatMap(({ scores }) => scores)
    const text = junitOf(yield* readRows(runDir), {
      name,
      scorer,
      // Without any score, there are only errors and skipped tests.
      direction: summaries.find((one) => one.scorer === scorer)?.direction ?? "none",
      threshold: typeof config.passThreshold === "number" ? config.passThreshold : 1,
      gates: judgement.gates,
    })
    yield* makeFolderOf("junit", junit.value)
    yield* writeFile(junit.value, utf8.encode(text), "--junit")
  }
})

const makeFolderOf = (flag: string, file: string) =>
  Effect.mapError(makeFolder(dirname(resolve(file))), ({ message }) => usageError(`--${flag} ${file}: ${message}`))

/**
 * Writes the summary. The file that GitHub names for the summary of a job is shared by the commands of a step, so the text is
 * appended to it; any other file is replaced.
 */
const writeSummary = Effect.fnUntraced(function* (file: string, text: string) {
  yield* makeFolderOf("summary", file)
  // GitHub prescribes the name of this variable.
  const shared = process.env.GITHUB_STEP_SUMMARY
  if (shared === undefined || shared === "" || resolve(shared) !== resolve(file)) {
    return yield* writeFile(file, utf8.encode(text), "--summary")
  }
  const fs = yield* FileSystem.FileSystem
  yield* Effect.mapError(fs.writeFileString(file, text, { flag: "a" }), (error) =>
    usageError(`--summary ${file}: ${systemMessage(error)}`),
  )
})
