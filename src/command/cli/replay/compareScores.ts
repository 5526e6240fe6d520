/** Compares the texts of the score files of two runs, for `effect replay`. These are pure functions. */
import { unplacedModel } from "../../../base/config/places.ts"
import { parsedJson } from "../../../base/text/text.ts"
import { trainScores } from "../../../run/Layout.ts"

/** The first value that differs between the score files of two runs. */
export interface ScoreDifference {
  readonly file: string
  /** The number of the line; the first line is 1. */
  readonly line: number
  readonly step: number | null
  readonly key: string
  readonly then: unknown
  readonly now: unknown
}

/** The texts of a run's score files, by their paths in the run's folder. */
export type ScoreFiles = ReadonlyMap<string, string>

/** The scores of a replay, its digest if it was trained to the end, and a reason why it may differ. */
export interface ReplayedScores {
  readonly scores: ScoreFiles
  readonly digest: string | undefined
  readonly hint?: string | undefined
}

interface NumberedLine {
  /** The number of the line; the first line is 1. */
  readonly number: number
  readonly text: string
}

/** Returns the lines of the training episode with this `episode_index`. */
export const linesOfEpisode = (files: ScoreFiles, episode: number): ReadonlyArray<NumberedLine> =>
  linesOf(files.get(trainScores)).filter(({ text }) => recordIn(text)?.episode_index === episode)

/**
 * Returns the first difference within one training episode, even if the episode's lines have other line numbers in the other
 * file.
 */
export const differenceInEpisode = (
  before: ScoreFiles,
  after: ScoreFiles,
  episode: number,
): ScoreDifference | undefined =>
  differenceIn(trainScores, linesOfEpisode(before, episode), linesOfEpisode(after, episode), false)

/**
 * Returns the difference with the lowest env step; undefined if only times differ. With `isPrefix`, the first run is
 * unfinished, so additional lines of the second run don't count as a difference.
 */
export const firstScoreDifference = (
  before: ScoreFiles,
  after: ScoreFiles,
  isPrefix: boolean,
): ScoreDifference | undefined => {
  const files = [...new Set([...before.keys(), ...(isPrefix ? [] : after.keys())])]
  const differences = files.flatMap(
    (file) => differenceIn(file, linesOf(before.get(file)), linesOf(after.get(file)), isPrefix) ?? [],
  )
  return differences.sort((a, b) => (a.step ?? Infinity) - (b.step ?? Infinity))[0]
}

/**
 * Returns the complete lines of a text. What follows the last line feed is left out: it is empty, or an incompletely written
 * line.
 */
const linesOf = (text = ""): ReadonlyArray<NumberedLine> =>
  text
    .split("\n")
    .slice(0, -1)
    .map((line, index) => ({ number: index + 1, text: line }))

/** The values of these keys are times, which differ between two equal runs. */
const timeKeys = new Set(["timestamp", "step_start", "step_end", "duration_ms"])

/** Returns the first difference, apart from times, between a file's lines in two runs; undefined if there is none. */
const differenceIn = (
  file: string,
  before: ReadonlyArray<NumberedLine>,
  after: ReadonlyArray<NumberedLine>,
  isPrefix: boolean,
): ScoreDifference | undefined => {
  const count = isPrefix ? before.length : Math.max(before.length, after.length)
  for (let index = 0; index < count; index++) {
    const [then, now] = [before[index], after[index]]
    const [recordThen, recordNow] = [recordIn(then?.text), recordIn(now?.text)]
    const step = (recordThen ?? recordNow)?.step_index
    const at = { file, line: (then ?? now).number, step: typeof step === "number" ? step : null }
    if (recordThen === undefined || recordNow === undefined) {
      return { ...at, key: "the line", then: then?.text ?? null, now: now?.text ?? null }
    }
    const key = [...new Set([...Object.keys(recordThen), ...Object.keys(recordNow)])].find(
      (one) => !timeKeys.has(one) && textOf(one, recordThen[one]) !== textOf(one, recordNow[one]),
    )
    if (key !== undefined) return { ...at, key, then: recordThen[key] ?? null, now: recordNow[key] ?? null }
  }
  return undefined
}

/**
 * Returns a value as JSON. The name of a model is returned without its folders, because the replay uses the saved config, in
 * which paths are absolute.
 */
const textOf = (key: string, value: unknown): string | undefined =>
  JSON.stringify(key === "lm_model" && typeof value === "string" ? unplacedModel(value) : value)

/** Parses a line; undefined if it is missing or not a JSON object. */
const recordIn = (line = ""): Readonly<Record<string, unknown>> | undefined => {
  const value = parsedJson(line)
  return typeof value === "object" && value !== null ? { ...value } : undefined
}
