/**
 * The sink (a receiver of a run's events) that writes the files of scores below `scores/`. The program or command that starts
 * a run adds it to the recorder.
 */
import { Clock, Effect } from "effect"
import { appender } from "./appender.ts"
import type { ByteWriter } from "../../base/formats/ByteWriter.ts"
import type { Sink } from "./Recorder.ts"
import type { EpisodeEnded, RunStarted, ValidationEnded } from "./RunEvent.ts"
import { stepScores } from "./stepScores.ts"
import { timestamp } from "./timestamp.ts"
import * as Layout from "../Layout.ts"
import { utf8 } from "../../base/text/utf8.ts"

/** The sink for scores: one line per step for language-model agents, and one line per episode for other runs. */
export const scores: Sink = (run, about) =>
  (about.unit === "episodes" || about.agents === true ? stepScores : episodeScores)(run, about)

/**
 * Writes `scores/train/scores.jsonl` with one line per episode, and for each validation
 * `scores/val/{N}_seen_episodes_scores.jsonl`, where N is the number of training episodes until then.
 *
 * A line has the same keys as a line of `stepScores.ts`, which describes a step of a language-model agent, and some more. But
 * `score` is the return of the episode, and `step_index` the number of env steps of the run so far.
 */
const episodeScores: Sink = Effect.fnUntraced(function* (run, about) {
  const train = yield* appender(run, Layout.trainScores)
  const write = lineWriter(about)
  return {
    emit: (events) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const validations: Array<ValidationEnded> = []
        for (const event of events) {
          if (event._tag === "EpisodeEnded") write(train.buffer, now, event)
          else if (event._tag === "ValidationEnded") validations.push(event)
        }
        const rest = train.settle(now)
        if (validations.length === 0) return rest
        // Two validations during one long episode have the same number N, so they share a file; each appends its lines.
        const lines = Effect.forEach(validations, (event) =>
          run.append(Layout.validationScores(event.seenEpisodes), validationLines(now, event, about)),
        )
        return Effect.andThen(lines, rest)
      }),
    flush: train.flush,
  }
})

const json = (value: number): string => (Number.isFinite(value) ? String(value) : "null")

const envKeys = (env: string): string => `"env_id":${JSON.stringify(env)},"env_type":${JSON.stringify(env)}`

const validationLines = (now: number, event: ValidationEnded, about: RunStarted): string => {
  const start = `{"timestamp":"${timestamp(now)}","mode":"val","episode_index":`
  return event.episodes
    .map(
      (episode, index) =>
        `${start}${index},"step_index":${event.step},"score":${json(episode.return)},` +
        `"episode_cum_score":${json(episode.return)},${envKeys(episode.env ?? about.env)},${episode.agent === undefined ? "" : `"agent":${JSON.stringify(episode.agent)},`}${episode.counts === false ? `"counts":false,` : ""}"episode_length":${episode.length},` +
        `"terminated":${episode.terminated},"truncated":${episode.truncated}}\n`,
    )
    .join("")
}

/** Makes the function that writes training episodes as lines. For speed, it encodes constant parts only once. */
const lineWriter = (about: RunStarted) => {
  const { encode } = utf8
  const step = encode(`,"step_index":`)
  const score = encode(`,"score":`)
  const total = encode(`,"episode_cum_score":`)
  const env = encode(`,${envKeys(about.env)},"env_index":`)
  const length = encode(`,"episode_length":`)
  /** Caches the encoded ends of lines, by the reason of a truncation, and then by the two flags. */
  const ends = new Map<string | null, Array<Uint8Array | undefined>>()
  const endOf = ({ terminated, truncated, truncationReason: reason }: EpisodeEnded): Uint8Array => {
    const flags = (terminated ? 1 : 0) + (truncated ? 2 : 0)
    const cached = ends.get(reason) ?? []
    ends.set(reason, cached)
    return (cached[flags] ??= encode(
      `,"terminated":${terminated},"truncated":${truncated},"truncation_reason":${JSON.stringify(reason)}}\n`,
    ))
  }
  let startedAt = NaN
  let start: Uint8Array = new Uint8Array(0)

  return (to: ByteWriter, now: number, event: EpisodeEnded): void => {
    if (now !== startedAt) {
      startedAt = now
      start = encode(`{"timestamp":"${timestamp(now)}","mode":"train","episode_index":`)
    }
    to.piece(start)
    to.json(event.episode)
    to.piece(step)
    to.json(event.step)
    to.piece(score)
    to.json(event.return)
    to.piece(total)
    to.json(event.return)
    to.piece(env)
    to.json(event.env)
    to.piece(length)
    to.json(event.length)
    to.piece(endOf(event))
  }
}
