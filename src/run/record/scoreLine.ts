/**
 * Lines of scores as all who draw them need them, whoever wrote them: a trainer, which writes one an episode; an agent
 * that talks, which writes one a step; another program's runtime, whose lines have more or other keys.
 *
 * It knows no Schema: thousands of files are looked through with it before a page shows anything.
 *
 * @example
 * ```ts
 * const lines = text.split("\n").flatMap((line) => scoreLine(line) ?? [])
 * episodesOf(lines).map(({ total }) => total) // the episodes' returns
 * ```
 */
import { isPlain } from "../../config/Config.ts"

export interface ScoreLine {
  /** What it tells of. */
  readonly of: "episode" | "step"
  /** In milliseconds; NaN where it doesn't say. */
  readonly time: number
  /** Trainers count from 0, runtimes from 1; null where it doesn't say. */
  readonly episode: number | null
  /** Of a trainer, the env steps of the run so far; of a runtime, within the episode, from 1. */
  readonly step: number
  /** Null where it was no finite number, or the episode failed there. */
  readonly score: number | null
  /** Of the episode so far. */
  readonly total: number | null
  /** Steps of the episode so far; null where it doesn't say. */
  readonly length: number | null
  readonly terminated: boolean | null
  /** The episode ended here by a failure. */
  readonly failed: boolean
}

const finite = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null)

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A line without its end; undefined where it is none of scores. */
export const scoreLine = (text: string): ScoreLine | undefined => {
  const data = parsed(text)
  if (!isPlain(data)) return undefined
  const { timestamp, episode_index, episode_length, episode_cum_score, terminated, error } = data
  const [step, score] = [finite(data["step_index"]), finite(data["score"])]
  if (step === null || !(score !== null || data["score"] === null)) return undefined
  const total = finite(episode_cum_score)
  // A trainer's episode has a length; a runtime's step has what its episode came to so far.
  const of = episode_length === undefined && total !== null ? "step" : "episode"
  return {
    of,
    time: typeof timestamp === "string" ? Date.parse(timestamp) : NaN,
    episode: finite(episode_index),
    step,
    score,
    total: of === "step" ? total : score,
    length: of === "step" ? step : finite(episode_length),
    terminated: typeof terminated === "boolean" ? terminated : null,
    failed: of === "step" && (score === null || error !== undefined),
  }
}

/** The last line of each episode, in order; of trainers that is every line. */
export const episodesOf = (lines: ReadonlyArray<ScoreLine>): ReadonlyArray<ScoreLine> =>
  lines.filter((line, at) => {
    const next = lines[at + 1]
    return line.of === "episode" || next === undefined || next.of === "episode" || next.episode !== line.episode
  })
