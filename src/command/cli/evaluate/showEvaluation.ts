/** Prints finished evaluations, which it reads from their folders. */
import { Effect } from "effect"
import { messageOf } from "../../../base/text/text.ts"
import type { EvaluationResult } from "../../../agents/evaluate/result.ts"
import { usageError, writeJson, writeOut } from "../output/output.ts"
import { readMetrics } from "../run/finished.ts"
import { conclude } from "./conclude.ts"
import { anyFailures } from "./failures.ts"
import type { EvalFlags } from "./flags.ts"
import { gatesOf } from "./gates.ts"

// These modules import the code that asks language models, so they are loaded only when they are needed.
const evaluations = Effect.promise(() => import("../../../agents/evaluate/Evaluations.ts"))
const reports = Effect.promise(() => import("../../../agents/evaluate/report/Report.ts"))

/** Formats the result of an evaluation that has just finished: its tables, and its folder. */
export const evaluationText = Effect.fnUntraced(function* (result: EvaluationResult) {
  const { text } = yield* reports
  return `${text(result.report, result)}\n${result.runDir}\n`
})

/** Prints the comparison of two finished evaluations, task by task: `effect eval RUN OTHER`. */
export const compareEvaluations = Effect.fnUntraced(function* (left: string, right: string, json: boolean) {
  const { compare } = yield* evaluations
  const { comparisonText } = yield* reports
  const comparisons = yield* compare(left, right)
  yield* json
    ? writeJson({ left, right, comparisons })
    : writeOut(`before  ${left}\nafter   ${right}\n\n${comparisonText(comparisons)}`)
})

/** Prints the tables of a finished evaluation again, and judges it by the gates of the flags: `effect eval RUN`. */
export const showEvaluation = Effect.fnUntraced(function* (input: EvalFlags, run: string) {
  const gates = yield* gatesOf(input)
  const { EvaluationResult } = yield* evaluations
  const { text } = yield* reports
  const result = yield* Effect.mapError(readMetrics(run, EvaluationResult), (error) =>
    usageError(
      "missing" in error && error.missing
        ? `${run}: this evaluation isn't finished; resume it with effect eval FILE --resume ${run}`
        : `${run}/metrics.json: ${messageOf(error)}`,
    ),
  )
  // The tables of an evaluation with failed episodes are only shown, unless the user asks for a judgement.
  const isJudged = input.maxFailures.typed !== undefined || gates.failUnder.length > 0 || gates.baseline !== undefined
  const shown = { ...input, quiet: false, maxFailures: isJudged ? input.maxFailures : anyFailures }
  // The run may have been moved since it was played.
  yield* conclude(shown, { ...result, runDir: run }, { gates, text: () => Effect.succeed(text(result.report, result)) })
})
