import { Clock, Effect } from "effect"
import { appender } from "./appender.ts"
import type { Sink } from "./Recorder.ts"
import type { EpisodeEnded, ValidationEnded } from "./RunEvent.ts"

/**
 * The sink of scores: `scores/train/scores.jsonl` with a line an episode, and for each validation
 * `scores/val/{N}_seen_episodes_scores.jsonl`, N being the training episodes seen by then.
 */
export const scores: Sink = (run, about) =>
  Effect.sync(() => {
    const train = appender(run, "scores/train/scores.jsonl")
    // What doesn't change from line to line; the rest is numbers and short words, which need no JSON encoder.
    const env = `"env_id":${JSON.stringify(about.env)},"env_type":${JSON.stringify(about.env)}`

    const episodeLine = (time: string, event: EpisodeEnded): string =>
      `{"timestamp":"${time}","mode":"train","episode_index":${event.episode},"step_index":${event.step},` +
      `"score":${event.return},"episode_cum_score":${event.return},${env},"env_index":${event.env},"episode_length":${event.length},` +
      `"terminated":${event.terminated},"truncated":${event.truncated},"truncation_reason":${quoted(event.truncationReason)}}\n`

    const validationLines = (time: string, event: ValidationEnded): string =>
      event.episodes
        .map(
          (episode, index) =>
            `{"timestamp":"${time}","mode":"validation","episode_index":${index},"step_index":${event.step},` +
            `"score":${episode.return},"episode_cum_score":${episode.return},${env},"episode_length":${episode.length},` +
            `"terminated":${episode.terminated},"truncated":${episode.truncated}}\n`,
        )
        .join("")

    return {
      emit: Effect.fnUntraced(function* (events) {
        const time = timestamp(yield* Clock.currentTimeMillis)
        for (const event of events) {
          if (event._tag === "EpisodeEnded") train.add(episodeLine(time, event))
          if (event._tag === "ValidationEnded") {
            const path = `scores/val/${event.seenEpisodes}_seen_episodes_scores.jsonl`
            // Two validations between two episodes (long ones) share a file name; each adds its own lines.
            yield* run.append(path, new TextEncoder().encode(validationLines(time, event)))
          }
        }
        yield* train.settle
      }),
      flush: train.flush,
    }
  })

const quoted = (word: string | null): string => (word === null ? "null" : `"${word}"`)

/** ISO 8601, in UTC, to the microsecond. */
export const timestamp = (millis: number): string => `${new Date(millis).toISOString().slice(0, -1)}000Z`
