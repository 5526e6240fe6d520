/**
 * Converts validations between their four forms: the outcome in an event (`ValidationOutcome`), the episodes in a run's state
 * (`Evaluation`), the summary in `metrics.json`, and the record in `return.json` (`EvaluationRecord`). These are pure
 * functions. Every kind of run uses them.
 */
import * as Schema from "effect/Schema"
import { utf8 } from "../base/text/utf8.ts"
import type { ValidationEnded } from "./record/RunEvent.ts"
import { countedIn, scoresBy } from "./record/scalars.ts"
import { AgentScore, type ValidationSummary } from "./RunResult.ts"
import { deviationOf, meanOf } from "../base/statistics/resampling.ts"

/** One evaluation in `return.json`, in the format of RLtools. The file is a list of these records. */
const EvaluationRecord = Schema.Struct({
  step: Schema.Int,
  returns_mean: Schema.Finite,
  /** The population standard deviation of the returns (the divisor is n). */
  returns_std: Schema.Finite,
  episode_length_mean: Schema.Finite,
  episode_length_std: Schema.Finite,
  returns: Schema.Array(Schema.Finite),
  /** Files that RLtools wrote before 2025 lack this key and the next two. */
  episode_length: Schema.optionalKey(Schema.Array(Schema.Int)),
  num_terminated: Schema.optionalKey(Schema.Int),
  share_terminated: Schema.optionalKey(Schema.Finite),
  /** The score of each agent of a game; left out for other envs. */
  agents: Schema.optionalKey(Schema.Array(Schema.Struct({ agent: Schema.String, returns_mean: Schema.Finite }))),
})

export const ReturnFile = Schema.Array(EvaluationRecord)

/** The episodes of one validation that count for its score, as a run's state stores them. */
export const Evaluation = Schema.Struct({
  step: Schema.Int,
  returns: Schema.Array(Schema.Finite),
  lengths: Schema.Array(Schema.Int),
  /** The number of episodes that ended in a terminal state. */
  terminated: Schema.Int,
  /** The score of each agent of a game; left out for other envs. */
  agents: Schema.optionalKey(Schema.Array(AgentScore)),
})
export type Evaluation = typeof Evaluation.Type

/** The outcome of a validation, as events, results and `effect eval` report it. */
export type ValidationOutcome = Omit<ValidationEnded, "_tag" | "step" | "seenEpisodes">

/** Converts the outcome of the validation at a step into the form in which a run's state stores it. */
export const evaluationOf = (step: number, { episodes }: Pick<ValidationOutcome, "episodes">): Evaluation => {
  const counted = countedIn(episodes)
  const agents = scoresBy({ episodes }, "agent").map(([agent, meanReturn]) => ({ agent, meanReturn }))
  return {
    step,
    returns: counted.map((episode) => episode.return),
    lengths: counted.map(({ length }) => length),
    terminated: counted.filter(({ terminated }) => terminated).length,
    ...(agents.length === 0 ? {} : { agents }),
  }
}

/** Summarises a validation for `metrics.json`; null if it has no episodes. */
export const summaryOf = (evaluation: Evaluation | undefined): ValidationSummary | null =>
  evaluation === undefined || evaluation.returns.length === 0
    ? null
    : {
        step: evaluation.step,
        episodes: evaluation.returns.length,
        ...spreadOf(evaluation.returns),
        ...(evaluation.agents === undefined ? {} : { agents: evaluation.agents }),
      }

/** Makes the outcome of a validation from its episodes. */
export const outcomeOf = (episodes: ValidationOutcome["episodes"]): ValidationOutcome => ({
  episodes,
  ...spreadOf(countedIn(episodes).map((episode) => episode.return)),
})

/** Returns the mean and the population standard deviation of returns. */
const spreadOf = (returns: ReadonlyArray<number>) => ({
  meanReturn: meanOf(returns),
  stdReturn: deviationOf(returns),
})

const recordOf = ({ step, returns, lengths, terminated, agents }: Evaluation): typeof EvaluationRecord.Encoded => ({
  step,
  returns_mean: meanOf(returns),
  returns_std: deviationOf(returns),
  episode_length_mean: meanOf(lengths),
  episode_length_std: deviationOf(lengths),
  returns,
  episode_length: lengths,
  num_terminated: terminated,
  share_terminated: terminated / returns.length,
  ...(agents === undefined
    ? {}
    : { agents: agents.map(({ agent, meanReturn }) => ({ agent, returns_mean: meanReturn })) }),
})

const bytesOf = (value: unknown): Uint8Array => utf8.encode(`${JSON.stringify(value)}\n`)

/** Encodes a `return.json`. An evaluation without episodes has no mean, so it is left out. */
export const encodeReturnFile = (outcomes: ReadonlyArray<Evaluation>): Uint8Array =>
  bytesOf(outcomes.filter(({ returns }) => returns.length > 0).map(recordOf))

/** Encodes one evaluation as `evaluation_results.json`. */
export const encodeEvaluation = (outcome: Evaluation): Uint8Array => bytesOf(recordOf(outcome))
