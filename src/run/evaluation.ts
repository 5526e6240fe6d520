import { Schema } from "effect"
import { utf8 } from "../config/utf8.ts"
import type { ValidationEnded } from "./record/RunEvent.ts"
import type { ValidationSummary } from "./RunResult.ts"
import { deviationOf, meanOf } from "../statistics/resampling.ts"

/** One evaluation as RLtools writes it in `return.json`: a list of these, whose file says that a run is finished. */
export const EvaluationRecord = Schema.Struct({
  step: Schema.Int,
  returns_mean: Schema.Finite,
  /** Population deviation, as all deviations here. */
  returns_std: Schema.Finite,
  episode_length_mean: Schema.Finite,
  episode_length_std: Schema.Finite,
  returns: Schema.Array(Schema.Finite),
  /** This and the next two are not in files of before 2025. */
  episode_length: Schema.optionalKey(Schema.Array(Schema.Int)),
  num_terminated: Schema.optionalKey(Schema.Int),
  share_terminated: Schema.optionalKey(Schema.Finite),
})

export const ReturnFile = Schema.Array(EvaluationRecord)

/** Reads a `return.json`, RLtools' own too. */
export const decodeReturnFile = Schema.decodeUnknownEffect(Schema.fromJsonString(ReturnFile))

/** The episodes of one validation, as a run's state holds them. */
export const Evaluation = Schema.Struct({
  step: Schema.Int,
  returns: Schema.Array(Schema.Finite),
  lengths: Schema.Array(Schema.Int),
  /** The number of episodes that ended in a terminal state. */
  terminated: Schema.Int,
})
export type Evaluation = typeof Evaluation.Type

/** A validation as it went: the same in events, in results and for `effect eval`. */
export type ValidationOutcome = Omit<ValidationEnded, "_tag" | "step" | "seenEpisodes">

export const evaluationOf = (step: number, { episodes }: Pick<ValidationOutcome, "episodes">): Evaluation => ({
  step,
  returns: episodes.map((episode) => episode.return),
  lengths: episodes.map(({ length }) => length),
  terminated: episodes.filter(({ terminated }) => terminated).length,
})

/** The mean and the population deviation of a validation, for `metrics.json`; null for a validation without episodes. */
export const summaryOf = (evaluation: Evaluation | undefined): ValidationSummary | null =>
  evaluation === undefined || evaluation.returns.length === 0
    ? null
    : { step: evaluation.step, episodes: evaluation.returns.length, ...spreadOf(evaluation.returns) }

/** Mean and population deviation. */
export const spreadOf = (
  returns: ReadonlyArray<number>,
): { readonly meanReturn: number; readonly stdReturn: number } => ({
  meanReturn: meanOf(returns),
  stdReturn: deviationOf(returns),
})

const recordOf = ({ step, returns, lengths, terminated }: Evaluation): typeof EvaluationRecord.Encoded => ({
  step,
  returns_mean: meanOf(returns),
  returns_std: deviationOf(returns),
  episode_length_mean: meanOf(lengths),
  episode_length_std: deviationOf(lengths),
  returns,
  episode_length: lengths,
  num_terminated: terminated,
  share_terminated: terminated / returns.length,
})

const bytesOf = (value: unknown): Uint8Array => utf8.encode(`${JSON.stringify(value)}\n`)

/** The bytes of a `return.json`. An evaluation without episodes has no mean, so it is left out. */
export const encodeReturnFile = (outcomes: ReadonlyArray<Evaluation>): Uint8Array =>
  bytesOf(outcomes.filter(({ returns }) => returns.length > 0).map(recordOf))

/** The bytes of one evaluation, as `evaluation_results.json` holds it. */
export const encodeEvaluation = (outcome: Evaluation): Uint8Array => bytesOf(recordOf(outcome))
