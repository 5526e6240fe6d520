import { join } from "node:path"
import { Effect, type FileSystem, Schema } from "effect"
import { mostBytes } from "../../config/files.ts"
import { readTextWithin } from "../../config/files-node.ts"
import { toCamelCase } from "../../config/Config.ts"
import { messageOf, oneLine } from "../../config/text.ts"
import type { JsonLinesError } from "../../formats/jsonLines.ts"
import { writeOut } from "../output/output.ts"
import { UsageError } from "../UsageError.ts"
import * as Layout from "../../run/Layout.ts"

export type CompareError = JsonLinesError | UsageError

// Loaded when they are asked for, as all that needs models is.
const evaluations = Effect.promise(() => import("../../evaluate/Evaluations.ts"))
const reports = Effect.promise(() => import("../../evaluate/Report.ts"))

/** `effect eval A B`. */
export const compareEvaluations = Effect.fnUntraced(function* (given: {
  readonly left: string
  readonly right: string
  readonly json: boolean
}): Effect.fn.Return<void, CompareError, FileSystem.FileSystem> {
  const { left, right, json } = given
  const { compare } = yield* evaluations
  const { comparisonText } = yield* reports
  const comparisons = yield* compare(left, right)
  yield* writeOut(
    json
      ? `${JSON.stringify({ left, right, comparisons })}\n`
      : `before  ${left}\nafter   ${right}\n\n${comparisonText(comparisons)}`,
  )
})

/** `effect eval RUN` of a finished evaluation: its tables once more. */
export const showEvaluation = Effect.fnUntraced(function* (given: {
  readonly folder: string
  readonly json: boolean
}): Effect.fn.Return<void, CompareError> {
  const { folder, json } = given
  const { EvaluationResult } = yield* evaluations
  const { text } = yield* reports
  const file = join(folder, Layout.metrics)
  const found = yield* Effect.tryPromise({
    try: () => readTextWithin(file, mostBytes.text),
    catch: (error) =>
      new UsageError({
        message: `${folder}: this evaluation isn't finished (${messageOf(error)}); resume it with effect eval FILE --resume ${folder}`,
      }),
  })
  const parsed = yield* Effect.try({
    try: (): unknown => toCamelCase(JSON.parse(found)),
    catch: (error) => new UsageError({ message: `${file}: ${messageOf(error)}` }),
  })
  const result = yield* Effect.mapError(
    Schema.decodeUnknownEffect(EvaluationResult)(parsed),
    (error) => new UsageError({ message: `${file}: ${oneLine(error.message)}` }),
  )
  yield* writeOut(json ? `${JSON.stringify(result)}\n` : text(result.report, result))
})
