/** The Schemas of the results of a run that learns prompts: of its `metrics.json` and its `candidates.json`. */
import { Schema } from "effect"
import { naturalInt } from "../../base/config/fields.ts"
import { Interval } from "../../base/statistics/intervals.ts"
import { Paired } from "../../base/statistics/paired.ts"
import { RunResult } from "../../run/RunResult.ts"
import { SearchState } from "./candidates.ts"

/** The seed's scores and the best candidate's on the same tasks, and the difference, task by task. */
const Comparison = Schema.Struct({ tasks: Schema.Int, seed: Interval, best: Interval, difference: Paired })

/** The result of a run that learns prompts, and the content of its `metrics.json`. */
export const PromptsResult = Schema.Struct({
  ...RunResult.fields,
  learner: Schema.Literals(["gepa", "bootstrap"]),
  /** The number of candidates, the seed included. */
  candidates: Schema.Int,
  iterations: Schema.Int,
  /** The index of the best candidate; 0 if no candidate is better than the seed. */
  best: Schema.Int,
  /** The numbers of iterations by their outcome. */
  outcomes: Schema.Array(Schema.Struct({ outcome: Schema.String, count: Schema.Int })),
  tokens: Schema.Int,
  /** The reason for the end: `metric_calls`, `tokens`, `score` (good enough) or `done` (nothing left to try). */
  endedBy: Schema.Literals(["metric_calls", "tokens", "score", "done"]),
  /** The comparison on the validation tasks, on which the best candidate was chosen: it is a little too favourable. */
  validationScores: Comparison,
  /** The comparison on test tasks; null if there are none. */
  testScores: Schema.NullOr(Comparison),
  /** The confidence level of the intervals. */
  confidence: Schema.Finite,
})
export type PromptsResult = typeof PromptsResult.Type

/** The content of `candidates.json`: the state of the search, and the index of the best candidate. */
export const CandidatesFile = Schema.Struct({ best: naturalInt, ...SearchState.fields })
