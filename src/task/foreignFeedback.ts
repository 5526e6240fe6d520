/**
 * Feedback that others wrote: `{ score }`, or the older `{ correct }` and `{ is_correct }`.
 *
 * @example
 * ```ts
 * fromForeign({ is_correct: true, message: "ok" }).feedback // { score: 1, target: null, message: "ok" }
 * ```
 */
import { Context, Effect } from "effect"
import { display, isPlain } from "../config/Config.ts"
import type { Feedback } from "./TextEnv.ts"

type Rest = Partial<Omit<Feedback, "score">>

/** What an env of one's own may give: feedback, or its older form, which is read with a warning. */
export type GivenFeedback =
  | Feedback
  | (Rest & { readonly correct: boolean | number })
  | (Rest & { readonly is_correct: boolean | number })

export interface Read {
  readonly feedback: Feedback
  /** What somebody should know of how it was read. */
  readonly warning: string | null
}

const numberOf = (value: unknown): number | undefined => {
  if (typeof value === "boolean") return value ? 1 : 0
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value
  return typeof number === "number" && Number.isFinite(number) ? number : undefined
}

const textOf = (value: unknown): string | null =>
  value === undefined || value === null ? null : typeof value === "string" ? value : (JSON.stringify(value) ?? null)

const isSaid = (value: unknown): boolean => value !== undefined && value !== null

/** Feedback of ours from anybody's. What is no finite number scores 0, so that no NaN is ever written. */
export const fromForeign = (value: unknown): Read => {
  const given = isPlain(value) ? value : {}
  const key = ["score", "correct", "is_correct", "isCorrect"].find((name) => isSaid(given[name]))
  const said = key === undefined ? undefined : given[key]
  const score = numberOf(said)
  const { extra } = given
  const warning =
    key === undefined
      ? `feedback without a score counts as 0: ${display(value)}`
      : score === undefined
        ? `feedback whose "${key}" is no number counts as 0: ${display(said)}`
        : key === "score"
          ? null
          : `feedback with "${key}" is the older form; write "score": 1 or 0`
  return {
    feedback: {
      score: score ?? 0,
      target: textOf(given["target"]),
      message: textOf(given["message"]) ?? (typeof value === "string" ? value : ""),
      ...(isPlain(extra) ? { extra } : {}),
    },
    warning,
  }
}

/** The warnings that were given already: one a kind of env is enough. */
export const Warned = Context.Reference<Set<string>>("effect-rl/task/Warned", { defaultValue: () => new Set() })

/** The feedback of an env of this type; its older form with one warning. */
export const accepted = (type: string, given: GivenFeedback): Effect.Effect<Feedback> => {
  if ("score" in given) return Effect.succeed(given)
  const { feedback, warning } = fromForeign(given)
  const text = `Envs of type "${type}": ${warning}`
  return Effect.flatMap(Warned, (warned) => {
    if (warned.has(text)) return Effect.succeed(feedback)
    warned.add(text)
    return Effect.as(Effect.logWarning(text), feedback)
  })
}
