import { Effect, type FileSystem } from "effect"
import { messageOf } from "../../config/text.ts"
import type { JsonLinesError } from "../../formats/jsonLines.ts"
import { UsageError } from "../output/errors.ts"
import { writeOut } from "../output/output.ts"
import { readMetrics } from "../run/finished.ts"

export type CompareError = JsonLinesError | UsageError

// These modules import the code that asks language models, so they are loaded only when they are needed.
const evaluations = Effect.promise(() => import("../../evaluate/Evaluations.ts"))
const reports = Effect.promise(() => import("../../evaluate/Report.ts"))

/** Prints the comparison of two finished evaluations, task by task: `effect eval RUN OTHER`. */
export const compareEvaluations = Effect.fnUntraced(function* (options: {
  readonly left: string
  readonly right: string
  readonly json: boolean
}): Effect.fn.Return<void, CompareError, FileSystem.FileSystem> {
  const { left, right, json } = options
  const { compare } = yield* evaluations
  const { comparisonText } = yield* reports
  const comparisons = yield* compare(left, right)
  yield* writeOut(
    json
      ? `${JSON.stringify({ left, right, comparisons })}\n`
      : `before  ${left}\nafter   ${right}\n\n${comparisonText(comparisons)}`,
  )
})

/** Prints the tables of a finished evaluation again: `effect eval RUN`. */
export const showEvaluation = Effect.fnUntraced(function* (options: {
  readonly run: string
  readonly json: boolean
}): Effect.fn.Return<void, UsageError, FileSystem.FileSystem> {
  const { run, json } = options
  const { EvaluationResult } = yield* evaluations
  const { text } = yield* reports
  const result = yield* Effect.mapError(
    readMetrics(run, EvaluationResult),
    (error) =>
      new UsageError({
        message:
          "missing" in error && error.missing
            ? `${run}: this evaluation isn't finished; resume it with effect eval FILE --resume ${run}`
            : `${run}/metrics.json: ${messageOf(error)}`,
      }),
  )
  yield* writeOut(json ? `${JSON.stringify(result)}\n` : text(result.report, result))
})
