/** The sink (a receiver of a run's events) for scores of language-model agents, and the Schema of their lines. */
import { Clock, Effect } from "effect"
import * as Schema from "effect/Schema"
import { trainScores, validationScores } from "../Layout.ts"
import type { RunFiles } from "../store/RunFiles.ts"
import type { Sink } from "./Recorder.ts"
import type { RunEvent, StepScored } from "./RunEvent.ts"
import { timestamp } from "./timestamp.ts"
import { utf8 } from "../../base/text/utf8.ts"

/**
 * A line of an agent's `scores.jsonl`. If the setting `verboseScoreLogging` is off, the keys from `observation` to
 * `truncation_reason` are left out.
 */
export const StepScoreRecord = Schema.Struct({
  timestamp: Schema.String,
  mode: Schema.Literals(["train", "val"]),
  episode_index: Schema.Int,
  step_index: Schema.Int,
  /** The env's score; null if the episode failed at this step (`error` has the reason). */
  score: Schema.NullOr(Schema.Finite),
  episode_cum_score: Schema.Finite,
  env_id: Schema.String,
  env_type: Schema.String,
  observation: Schema.optionalKey(Schema.String),
  action: Schema.optionalKey(Schema.NullOr(Schema.String)),
  feedback: Schema.optionalKey(Schema.NullOr(Schema.Unknown)),
  /** The score plus a bonus or penalty for the form of the model's answer; left out if there is neither. */
  reward: Schema.optionalKey(Schema.Finite),
  info: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  lm_model: Schema.optionalKey(Schema.NullOr(Schema.String)),
  agent_type: Schema.optionalKey(Schema.String),
  step_start: Schema.optionalKey(Schema.String),
  step_end: Schema.optionalKey(Schema.String),
  duration_ms: Schema.optionalKey(Schema.Finite),
  /** The observation after the step; null if there was none. Files of other programs lack this key and the next three. */
  next_observation: Schema.optionalKey(Schema.NullOr(Schema.String)),
  terminated: Schema.optionalKey(Schema.Boolean),
  truncated: Schema.optionalKey(Schema.Boolean),
  truncation_reason: Schema.optionalKey(Schema.NullOr(Schema.String)),
  error: Schema.optionalKey(Schema.String),
})
export type StepScoreRecord = typeof StepScoreRecord.Type

/**
 * The sink for the scores of language-model agents. It writes one line per step, before `emit` returns. If an episode is
 * abandoned (stopped before its end), its lines are removed, because the episode will be played again.
 */
export const stepScores: Sink = Effect.fnUntraced(function* (run) {
  const append = yield* run.appending(trainScores)
  let written = (yield* run.exists(trainScores)) ? yield* run.size(trainScores) : 0
  /** The size in bytes of the training's score file after the last complete episode. */
  let boundary = written

  const take = Effect.fnUntraced(function* (events: ReadonlyArray<RunEvent>, now: number) {
    let train = ""
    const flush = Effect.suspend(() => {
      if (train === "") return Effect.void
      const bytes = utf8.encode(train)
      train = ""
      written += bytes.length
      return append(bytes)
    })
    const validation = new Map<number, string>()
    for (const event of events) {
      switch (event._tag) {
        case "StepScored":
          if (event.mode === "train") train += lineOf(event, now)
          else validation.set(event.seenEpisodes, (validation.get(event.seenEpisodes) ?? "") + lineOf(event, now))
          break
        case "EpisodeEnded":
          yield* flush
          boundary = written
          break
        case "Abandoned":
          yield* flush
          yield* event.mode === "validation" ? run.remove(validationScores(event.seenEpisodes)) : cutBack(run)
      }
    }
    yield* flush
    for (const [seen, lines] of validation) yield* run.append(validationScores(seen), lines)
  })

  const cutBack = Effect.fnUntraced(function* (files: RunFiles) {
    if (written === boundary) return
    yield* files.truncate(trainScores, boundary)
    written = boundary
  })

  return {
    emit: (events) => {
      if (!events.some(isScored)) return Effect.void
      return Effect.flatMap(Clock.currentTimeMillis, (now) => take(events, now))
    },
    flush: Effect.void,
  }
})

const isScored = ({ _tag }: RunEvent): boolean =>
  _tag === "StepScored" || _tag === "EpisodeEnded" || _tag === "Abandoned"

const lineOf = (event: StepScored, now: number): string => {
  const { details } = event
  const record: typeof StepScoreRecord.Encoded = {
    timestamp: timestamp(now),
    mode: event.mode === "validation" ? "val" : event.mode,
    episode_index: event.episode,
    step_index: event.stepIndex,
    score: event.score,
    episode_cum_score: event.episodeScore,
    env_id: event.envId,
    env_type: event.envType,
    ...(details === undefined
      ? {}
      : {
          observation: details.observation,
          action: details.action,
          feedback: details.feedback,
          ...(details.reward === undefined ? {} : { reward: details.reward }),
          info: details.info,
          lm_model: details.model,
          agent_type: details.agent,
          step_start: timestamp(details.startedAtMillis),
          step_end: timestamp(details.endedAtMillis),
          duration_ms: Math.round((details.endedAtMillis - details.startedAtMillis) * 1000) / 1000,
          next_observation: details.nextObservation,
          terminated: details.terminated,
          truncated: details.truncated,
          truncation_reason: details.truncationReason,
        }),
    ...(event.error === undefined ? {} : { error: event.error }),
  }
  return `${JSON.stringify(record)}\n`
}
