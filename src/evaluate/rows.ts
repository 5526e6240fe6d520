/**
 * The tables of an evaluation: a row an episode, and a row a step, as plain data under the names that score files have.
 *
 * @example
 * ```ts
 * const row = yield* episodeRow(played, { agent: "reader", scorers: [Scorer.score(), Scorer.exact()], price: undefined })
 * row.scores // { score: 1, exact: 1 }
 * csv([row]) // agent,episode_index,task,…
 * ```
 */
import { Effect, Schema } from "effect"
import { isPlain } from "../config/Config.ts"
import { Failure } from "../episode/rollouts/Outcome.ts"
import { TruncationReason, usageOf } from "../episode/Rollout.ts"
import type { Price } from "../lm/LmConfig.ts"
import type { LmError } from "../lm/LmError.ts"
import { lastOf, type PlayedEpisode } from "./PlayedEpisode.ts"
import type { Scorer } from "./Scorer.ts"
import type { ScorerError } from "./Scorer.ts"

const about = {
  /** By its name in the evaluation. */
  agent: Schema.String,
  /** From 1, as in scores. */
  episode_index: Schema.Int,
  /** Its place in the data set, from 0. */
  task: Schema.Int,
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
  /** What the data set says of the task. */
  metadata: Schema.Record(Schema.String, Schema.Unknown),
  /** What was done last, and what would have been right. */
  answer: Schema.NullOr(Schema.String),
  target: Schema.NullOr(Schema.String),
  /** What the env gave in all. */
  score: Schema.Finite,
  /** By the scorers' names; null where one had nothing to score. None of an episode that failed. */
  scores: Schema.Record(Schema.String, Schema.NullOr(Schema.Finite)),
  steps: Schema.Int,
  ...ending,
  calls: Schema.Int,
  retries: Schema.Int,
  input_tokens: Schema.Int,
  output_tokens: Schema.Int,
  /** In what the prices are in; null where there is none for the model. */
  cost: Schema.NullOr(Schema.Finite),
  duration_ms: Schema.Finite,
  error: Schema.NullOr(Failure),
})
export type EpisodeRow = typeof EpisodeRow.Type

export const StepRow = Schema.Struct({
  ...about,
  /** From 1. */
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

export interface Marking {
  readonly agent: string
  readonly scorers: ReadonlyArray<Scorer>
  readonly price: Price | undefined
}

const placeOf = ({ index, task, repeat, env }: PlayedEpisode, agent: string) => ({
  agent,
  episode_index: index + 1,
  task,
  repeat,
  env_id: env.id,
  env_type: env.type,
})

/** An episode with its marks. */
export const episodeRow = Effect.fnUntraced(function* (
  played: PlayedEpisode,
  { agent, scorers, price }: Marking,
): Effect.fn.Return<EpisodeRow, LmError | ScorerError> {
  const { env, steps, ending, rollouts, error, startedAtMillis, endedAtMillis } = played
  const scores: Record<string, number | null> = {}
  for (const { name, score } of error === null ? scorers : []) {
    const found = yield* score(played)
    scores[name] = found === null || Number.isFinite(found) ? found : null
  }
  const { calls, retries, inputTokens, outputTokens } = usageOf(rollouts)
  return {
    ...placeOf(played, agent),
    metadata: env.metadata,
    ...lastOf(played),
    score: played.totalScore,
    scores,
    steps: steps.length,
    terminated: ending.terminated,
    truncated: ending.truncated,
    truncation_reason: ending.truncationReason,
    calls,
    retries,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cost: price === undefined ? null : (inputTokens * price.input + outputTokens * price.output) / 1e6,
    duration_ms: endedAtMillis - startedAtMillis,
    error,
  }
})

export const stepRows = (played: PlayedEpisode, agent: string): ReadonlyArray<StepRow> =>
  played.steps.map((step, at) => ({
    ...placeOf(played, agent),
    step_index: at + 1,
    observation: step.observation,
    action: step.action,
    feedback: step.feedback.message,
    target: step.feedback.target,
    score: step.score,
    terminated: step.terminated,
    truncated: step.truncated,
    truncation_reason: step.truncationReason,
    duration_ms: step.endedAtMillis - step.startedAtMillis,
  }))

/** Rows as lines of JSON. */
export const jsonl = (rows: ReadonlyArray<EpisodeRow | StepRow>): string =>
  rows.map((row) => `${JSON.stringify(row)}\n`).join("")

/** What stands below a key has columns of its own: `scores.exact`. */
const flat = (row: object): ReadonlyMap<string, unknown> =>
  new Map(
    Object.entries(row).flatMap(([key, value]): ReadonlyArray<readonly [string, unknown]> =>
      isPlain(value) ? Object.entries(value).map(([inner, one]) => [`${key}.${inner}`, one] as const) : [[key, value]],
    ),
  )

const field = (value: unknown): string => {
  if (value === undefined || value === null) return ""
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "")
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Rows as CSV (RFC 4180), with a column for every key that any of them has. */
export const csv = (rows: ReadonlyArray<EpisodeRow | StepRow>): string => {
  const all = rows.map(flat)
  const columns = [...new Set(all.flatMap((row) => [...row.keys()]))]
  const line = (fields: ReadonlyArray<unknown>): string => `${fields.map(field).join(",")}\n`
  return [columns, ...all.map((row) => columns.map((column) => row.get(column)))].map(line).join("")
}
