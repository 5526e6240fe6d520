import { isPlain } from "../../config/plain.ts"
import { seenEpisodesOf } from "../Layout.ts"
import { episodesOf, type ScoreLine, scoreLine } from "../record/scoreLine.ts"
import { deviationOf, meanOf } from "../../statistics/resampling.ts"

/** A point of a run's learning curve. */
export interface Validation {
  readonly step: number
  readonly mean: number
  /** NaN where a file of another program doesn't have it. */
  readonly std: number
  readonly episodes: number
}

const finite = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined

/**
 * The evaluations in a return.json, RLtools' own too; undefined where it is not a list of these. This uses no Schema: the page reads a
 * thousand of these files before it shows anything.
 */
export const evaluationsIn = (data: unknown): ReadonlyArray<Validation> | undefined => {
  if (!Array.isArray(data)) return undefined
  const evaluations: Array<Validation> = []
  for (const record of data) {
    const mean = isPlain(record) ? finite(record.returns_mean) : undefined
    if (mean === undefined) return undefined
    const episodes = Array.isArray(record.returns) ? record.returns.length : 0
    evaluations.push({ step: finite(record.step) ?? 0, mean, std: finite(record.returns_std) ?? NaN, episodes })
  }
  return evaluations
}

export const lastValidation = (curve: ReadonlyArray<Validation>): number | undefined => curve.at(-1)?.mean

export const bestValidation = (curve: ReadonlyArray<Validation>): number | undefined =>
  curve.length === 0 ? undefined : curve.reduce((best, { mean }) => Math.max(best, mean), -Infinity)

/** The lines of a score file, and whether any was damaged; half a line at the end is one that is being written. */
export const scoreLines = (text: string): { readonly lines: ReadonlyArray<ScoreLine>; readonly damaged: boolean } => {
  const whole = text.split("\n").slice(0, -1)
  const lines = whole.flatMap((line) => {
    const found = scoreLine(line)
    return found === undefined ? [] : [found]
  })
  return { lines, damaged: lines.length < whole.length }
}

/** The return of a validation's episode, and where in the run that stood. */
export interface Played {
  readonly step: number
  readonly score: number | null
}

/** What a file's lines tell of. Runtimes count in episodes, and an episode of theirs that failed has no return. */
export const playedIn = (name: string, lines: ReadonlyArray<ScoreLine>): ReadonlyArray<Played> =>
  episodesOf(lines).map(({ of, step, total, failed }) => ({
    step: of === "step" ? (seenEpisodesOf(name) ?? NaN) : step,
    score: failed ? null : total,
  }))

/** Episodes as validations: those of one step are one. */
export const curveOf = (episodes: ReadonlyArray<Played>): ReadonlyArray<Validation> => {
  const scores = new Map<number, Array<number>>()
  for (const { step, score } of episodes) {
    if (score === null) continue
    const known = scores.get(step)
    if (known === undefined) scores.set(step, [score])
    else known.push(score)
  }
  return [...scores]
    .map(([step, values]) => ({ step, mean: meanOf(values), std: deviationOf(values), episodes: values.length }))
    .sort((a, b) => a.step - b.step)
}
