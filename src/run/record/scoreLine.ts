/**
 * Parses the lines of score files of all kinds into one form: lines of a training (one per episode), of a training of
 * language-model agents (one per step), and of another program (with more or other keys). It uses no Schema, for speed: a
 * page reads thousands of files with it before it shows anything.
 */
import { isPlain } from "../../base/config/plain.ts"
import { parsedJson } from "../../base/text/text.ts"

export interface ScoreLine {
  /** Whether the line describes an episode or a step. */
  readonly of: "episode" | "step"
  /** The time in milliseconds since 1970; NaN if it is missing. */
  readonly time: number
  /** The number of the episode: from 1 for language-model agents, from 0 for others. Null if it is missing. */
  readonly episode: number | null
  /** For an episode's line, the env steps of the run so far; for a step's line, its number in its episode, from 1. */
  readonly step: number
  /** The score; null if it is not a finite number, or if the episode failed at this step. */
  readonly score: number | null
  /** The sum of the episode's scores so far; null if it is missing. */
  readonly total: number | null
  /** The number of steps of the episode so far; null if it is missing. */
  readonly length: number | null
  readonly terminated: boolean | null
  /** Whether the episode failed at this step. */
  readonly failed: boolean
  /** For an episode of a multi-run trainer, the number of updates before its step; null for others. */
  readonly update: number | null
  /** The agent whose episode this is, in a game of several agents; null in other runs. */
  readonly agent: string | null
  /** Whether the episode counts for the score of its validation. */
  readonly counts: boolean
}

const finite = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null)

/** Parses one line, without its line feed; undefined if it is not a line of scores. */
export const scoreLine = (text: string): ScoreLine | undefined => {
  const data = parsedJson(text)
  if (!isPlain(data)) return undefined
  const { timestamp, episode_index, episode_length, episode_cum_score, terminated, error, info, agent, counts } = data
  const [step, score] = [finite(data["step_index"]), finite(data["score"])]
  if (step === null || !(score !== null || data["score"] === null)) return undefined
  const total = finite(episode_cum_score)
  // Only lines of episodes have `episode_length`. The line of an agent's step always has the sum of scores so far.
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
    update: isPlain(info) && finite(info["group"]) !== null ? finite(info["step"]) : null,
    agent: typeof agent === "string" ? agent : null,
    counts: counts !== false,
  }
}

/** Returns the last line of each episode, in order. If each line is a whole episode, these are all lines. */
export const episodesOf = (lines: ReadonlyArray<ScoreLine>): ReadonlyArray<ScoreLine> =>
  lines.filter((line, at) => {
    const next = lines[at + 1]
    return line.of === "episode" || next === undefined || next.of === "episode" || next.episode !== line.episode
  })
