import { trainScores } from "../../run/Layout.ts"

/** Two runs' score files, line by line; when something happened is no part of what happened. */
export interface ScoreDifference {
  readonly file: string
  /** From 1. */
  readonly line: number
  readonly step: number | null
  readonly key: string
  readonly then: unknown
  readonly now: unknown
}

type Files = ReadonlyMap<string, string>

interface Line {
  /** From 1. */
  readonly number: number
  readonly text: string
}

/** The lines of a training episode, by the number that it has there. */
export const linesOfEpisode = (files: Files, episode: number): ReadonlyArray<Line> =>
  linesOf(files.get(trainScores)).filter(({ text }) => read(text)?.episode_index === episode)

/** The first difference in that episode alone, wherever else its lines stand. */
export const differenceInEpisode = (then: Files, now: Files, episode: number): ScoreDifference | undefined =>
  differenceIn(trainScores, linesOfEpisode(then, episode), linesOfEpisode(now, episode), false)[0]

/**
 * The first difference by env steps; undefined where there is none. Of an unfinished run (`isPrefix`) only what it got to
 * is compared.
 */
export const firstDifference = (then: Files, now: Files, isPrefix: boolean): ScoreDifference | undefined => {
  const files = [...new Set([...then.keys(), ...(isPrefix ? [] : now.keys())])]
  const differences = files.flatMap((file) =>
    differenceIn(file, linesOf(then.get(file)), linesOf(now.get(file)), isPrefix),
  )
  return differences.sort((a, b) => (a.step ?? Infinity) - (b.step ?? Infinity))[0]
}

const linesOf = (text = ""): ReadonlyArray<Line> =>
  text
    .split("\n")
    .slice(0, -1)
    .map((line, index) => ({ number: index + 1, text: line }))

const timeless = new Set(["timestamp", "step_start", "step_end", "duration_ms"])

const differenceIn = (
  file: string,
  then: ReadonlyArray<Line>,
  now: ReadonlyArray<Line>,
  isPrefix: boolean,
): ReadonlyArray<ScoreDifference> => {
  const count = isPrefix ? then.length : Math.max(then.length, now.length)
  for (let index = 0; index < count; index++) {
    const [before, after] = [read(then[index]?.text), read(now[index]?.text)]
    const stepOf = (record: Readonly<Record<string, unknown>>): number | null =>
      typeof record.step_index === "number" ? record.step_index : null
    const line = (then[index] ?? now[index]).number
    const at = { file, line, step: stepOf(before ?? after ?? {}) }
    if (before === undefined || after === undefined) {
      return [{ ...at, key: "the line", then: then[index]?.text ?? null, now: now[index]?.text ?? null }]
    }
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      if (timeless.has(key) || JSON.stringify(before[key]) === JSON.stringify(after[key])) continue
      return [{ ...at, key, then: before[key] ?? null, now: after[key] ?? null }]
    }
  }
  return []
}

/** Undefined for what is missing, or no record. */
const read = (line: string | undefined): Readonly<Record<string, unknown>> | undefined => {
  if (line === undefined) return undefined
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === "object" && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
