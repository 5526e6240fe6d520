/**
 * Feedback that others wrote: `{ score }`, or the older `{ correct }` and `{ is_correct }`.
 *
 * @example
 * ```ts
 * fromForeign({ is_correct: true, message: "ok" }).feedback // { score: 1, target: null, message: "ok" }
 * ```
 */
import { isPlain } from "../../config/Config.ts"
import type { Feedback } from "./TextEnv.ts"

export interface Read {
  readonly feedback: Feedback
  /** What somebody should know of how it was read. */
  readonly warning: string | null
}

/** What can be read as a finite number; everything else is zero, so that no NaN is ever written. */
const scoreOf = (value: unknown): number => {
  if (typeof value === "boolean") return value ? 1 : 0
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value
  return typeof number === "number" && Number.isFinite(number) ? number : 0
}

const textOf = (value: unknown): string | null =>
  value === undefined || value === null ? null : typeof value === "string" ? value : (JSON.stringify(value) ?? null)

/** Feedback of ours from anybody's. */
export const fromForeign = (value: unknown): Read => {
  const given = isPlain(value) ? value : {}
  const legacy = ["correct", "is_correct", "isCorrect"].find((key) => given[key] !== undefined && given[key] !== null)
  const hasScore = given["score"] !== undefined && given["score"] !== null
  const score = hasScore ? scoreOf(given["score"]) : legacy === undefined ? 0 : scoreOf(given[legacy])
  const { extra } = given
  return {
    feedback: {
      score,
      target: textOf(given["target"]),
      message: textOf(given["message"]) ?? (typeof value === "string" ? value : ""),
      ...(isPlain(extra) ? { extra } : {}),
    },
    warning:
      hasScore || legacy === undefined ? null : `feedback with "${legacy}" is the older form; write "score": 1 or 0`,
  }
}
