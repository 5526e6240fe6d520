/**
 * Makes the tables of an evaluation: a row for each episode and a row for each step. Their keys are those of the score
 * files of trainings. `jsonl` and `csv` encode rows as text, which `play.ts` writes to files.
 *
 * @example
 * ```ts
 * const scorers = [Scorer.score(), Scorer.exact()]
 * const row = yield* episodeRow(played, { agent: "reader", scorers, price: undefined })
 * row.scores // { score: 1, exact: 1 }
 * csv([row]) // agent,episode_index,task,…
 * ```
 */
import { Effect, Schema } from "effect"
import { isPlain } from "../../base/config/Config.ts"
import { RolloutFailure } from "../episode/rollouts/Outcome.ts"
import { type RolloutEnding, TruncationReason, usageOf } from "../episode/Rollout.ts"
import { fieldOf } from "../../base/formats/csv.ts"
import { addScore } from "../lm/genAi.ts"
import type { Price } from "../lm/LmConfig.ts"
import type { LmError } from "../lm/LmError.ts"
import { lastOf, type EpisodeToScore } from "./PlayedEpisode.ts"
import type { AgentError } from "../agent/AgentError.ts"
import type { Scorer } from "./Scorer.ts"

/** The keys at the beginning of every row. */
const about = {
  /** The agent's name in the evaluation. */
  agent: Schema.String,
  /** The number of the episode, counted from 1, as in score files. */
  episode_index: Schema.Int,
  /** The position of the task in the data set, counted from 0. */
  task: Schema.Int,
  /** The position of the episode among those of its task, counted from 0. */
  repeat: Schema.Int,
  env_id: Schema.String,
  env_type: Schema.String,
}

const ending = {
  terminated: Schema.Boolean,
  truncated: Schema.Boolean,
  truncation_reason: Schema.NullOr(TruncationReason),
}

export const EpisodeRow = Schema.Struct({
  ...about,
  /** The task's metadata from the data set. */
  metadata: Schema.Record(Schema.String, Schema.Unknown),
  /** Identifies the content of a question without an id of its own, whose `env_id` is only its position. */
  content: Schema.optionalKey(Schema.String),
  /** The last action of the episode; null if there was none. */
  answer: Schema.NullOr(Schema.String),
  target: Schema.NullOr(Schema.String),
  /** The sum of the env's scores. */
  score: Schema.Finite,
  /** The scores by scorer name; null for a scorer that had nothing to score. Empty for a failed episode. */
  scores: Schema.Record(Schema.String, Schema.NullOr(Schema.Finite)),
  steps: Schema.Int,
  ...ending,
  calls: Schema.Int,
  retries: Schema.Int,
  input_tokens: Schema.Int,
  output_tokens: Schema.Int,
  /** The cost in the currency of the prices; null if the model has no price. */
  cost: Schema.NullOr(Schema.Finite),
  duration_ms: Schema.Finite,
  error: Schema.NullOr(RolloutFailure),
})
export type EpisodeRow = typeof EpisodeRow.Type

export const StepRow = Schema.Struct({
  ...about,
  /** The number of the step in its episode, counted from 1. */
  step_index: Schema.Int,
  observation: Schema.String,
  action: Schema.NullOr(Schema.String),
  feedback: Schema.String,
  target: Schema.NullOr(Schema.String),
  score: Schema.Finite,
  ...ending,
  duration_ms: Schema.Finite,
})
export type StepRow = typeof StepRow.Type

interface RowOptions {
  readonly agent: string
  readonly scorers: ReadonlyArray<Scorer>
  readonly price: Price | undefined
}

const commonColumns = ({ index, task, repeat, env }: EpisodeToScore, agent: string) => ({
  agent,
  episode_index: index + 1,
  task,
  repeat,
  env_id: env.id,
  env_type: env.type,
})

const endingOf = ({ terminated, truncated, truncationReason }: RolloutEnding) => ({
  terminated,
  truncated,
  truncation_reason: truncationReason,
})

/** Makes the table row of an episode, and computes its scores. A score that is not finite becomes null. */
export const episodeRow = Effect.fnUntraced(function* (
  played: EpisodeToScore,
  { agent, scorers, price }: RowOptions,
): Effect.fn.Return<EpisodeRow, LmError | AgentError> {
  const { env, steps, ending, rollouts, error, startedAtMillis, endedAtMillis } = played
  const scores: Record<string, number | null> = {}
  for (const { name, score } of error === null ? scorers : []) {
    const value = yield* score(played)
    scores[name] = value === null || Number.isFinite(value) ? value : null
    if (scores[name] !== null) yield* addScore(name, scores[name])
  }
  const { calls, retries, inputTokens, outputTokens } = usageOf(rollouts)
  return {
    ...commonColumns(played, agent),
    metadata: env.metadata,
    ...(env.content === undefined ? {} : { content: env.content }),
    ...lastOf(played),
    score: played.totalScore,
    scores,
    steps: steps.length,
    ...endingOf(ending),
    calls,
    retries,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cost: price === undefined ? null : (inputTokens * price.input + outputTokens * price.output) / 1e6,
    duration_ms: endedAtMillis - startedAtMillis,
    error,
  }
})

export const stepRows = (played: EpisodeToScore, agent: string): ReadonlyArray<StepRow> =>
  played.steps.map((step, at) => ({
    ...commonColumns(played, agent),
    step_index: at + 1,
    observation: step.observation,
    action: step.action,
    feedback: step.feedback.message,
    target: step.feedback.target,
    score: step.score,
    ...endingOf(step),
    duration_ms: step.endedAtMillis - step.startedAtMillis,
  }))

/** Encodes rows as lines of JSON. */
export const jsonl = (rows: ReadonlyArray<EpisodeRow | StepRow>): string =>
  rows.map((row) => `${JSON.stringify(row)}\n`).join("")

/** Returns the values of a row by column. A nested object becomes several columns, such as `scores.exact`. */
const flat = (row: object): ReadonlyMap<string, unknown> =>
  new Map(
    Object.entries(row).flatMap(([key, value]): ReadonlyArray<readonly [string, unknown]> =>
      isPlain(value) ? Object.entries(value).map(([inner, one]) => [`${key}.${inner}`, one] as const) : [[key, value]],
    ),
  )

/** Encodes rows as CSV (RFC 4180), with a column for every key that at least one row has. */
export const csv = (rows: ReadonlyArray<EpisodeRow | StepRow>): string => {
  const flatRows = rows.map(flat)
  const columns = [...new Set(flatRows.flatMap((row) => [...row.keys()]))]
  const line = (fields: ReadonlyArray<unknown>): string => `${fields.map(fieldOf).join(",")}\n`
  return [columns, ...flatRows.map((row) => columns.map((column) => row.get(column)))].map(line).join("")
}
