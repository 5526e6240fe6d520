/** Converts the scores of Inspect to numbers. */
import { isPlain } from "../../../base/config/plain.ts"
import type { InspectScore } from "./EvalLog.ts"

/** Inspect's grades, and the words that it counts as numbers. */
const grades: ReadonlyMap<string, number> = new Map([
  ["C", 1],
  ["P", 0.5],
  ["I", 0],
  ["N", 0],
  ["yes", 1],
  ["true", 1],
  ["no", 0],
  ["false", 0],
])

const numberOf = (value: unknown): number | null => {
  if (typeof value === "boolean") return value ? 1 : 0
  if (typeof value === "number") return Number.isFinite(value) ? value : null
  if (typeof value !== "string") return null
  const grade = grades.get(value) ?? grades.get(value.toLowerCase())
  const number = value.trim() === "" ? NaN : Number(value)
  return grade ?? (Number.isFinite(number) ? number : null)
}

/**
 * Returns a number for each scorer, or for each key of a scorer with several values, and the first answer that a scorer found. A
 * value that is no number is null.
 */
export const scoresOf = (scores: Readonly<Record<string, InspectScore>>) => {
  const values: Array<readonly [string, number | null]> = []
  let answer: string | null = null
  for (const [name, score] of Object.entries(scores)) {
    answer ??= score.answer ?? null
    if (!isPlain(score.value)) values.push([name, numberOf(score.value)])
    else for (const [key, value] of Object.entries(score.value)) values.push([`${name}.${key}`, numberOf(value)])
  }
  return { values: Object.fromEntries(values), answer }
}
