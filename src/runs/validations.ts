import { isPlain } from "../config/Config.ts"

/** A point of a run's learning curve. */
export interface Validation {
  readonly step: number
  readonly mean: number
  readonly std: number
  readonly episodes: number
}

export const lastValidation = (curve: ReadonlyArray<Validation>): number | undefined => curve.at(-1)?.mean

export const bestValidation = (curve: ReadonlyArray<Validation>): number | undefined =>
  curve.length === 0 ? undefined : curve.reduce((best, { mean }) => Math.max(best, mean), -Infinity)

/** The files of validations in a run that goes on, in the order in which they were written. */
export const inOrder = (names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const seen = (name: string): number => Number(/^(\d+)_seen_episodes_scores\.jsonl$/.exec(name)?.[1] ?? NaN)
  return names.filter((name) => !Number.isNaN(seen(name))).sort((a, b) => seen(a) - seen(b))
}

export interface ScoreLine {
  readonly step: number
  /** Null where it wasn't a finite number. */
  readonly score: number | null
}

/** The lines of a score file, and whether any was damaged; half a line at the end is one that is being written. */
export const scoreLines = (text: string): { readonly lines: ReadonlyArray<ScoreLine>; readonly damaged: boolean } => {
  const whole = text.split("\n").slice(0, -1)
  const lines = whole.flatMap((line) => {
    const found = scoreLine(line)
    return found === undefined ? [] : [found]
  })
  return { lines, damaged: lines.length < whole.length }
}

const scoreLine = (line: string): ScoreLine | undefined => {
  try {
    const data: unknown = JSON.parse(line)
    if (!isPlain(data)) return undefined
    const { step_index: step, score } = data
    if (typeof step !== "number" || !(typeof score === "number" || score === null)) return undefined
    return { step, score }
  } catch {
    return undefined
  }
}

/** Lines of validation episodes as validations: those of one step are one. */
export const curveOf = (lines: ReadonlyArray<ScoreLine>): ReadonlyArray<Validation> => {
  const scores = new Map<number, Array<number>>()
  for (const { step, score } of lines) {
    if (score === null) continue
    const known = scores.get(step)
    if (known === undefined) scores.set(step, [score])
    else known.push(score)
  }
  return [...scores]
    .map(([step, values]) => {
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length
      const std = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length)
      return { step, mean, std, episodes: values.length }
    })
    .sort((a, b) => a.step - b.step)
}
