/**
 * Defines the feedback on one step of a task, and reads its older forms `{ correct }` and `{ is_correct }`.
 *
 * @example
 * ```ts
 * fromForeign({ is_correct: true, message: "ok" }).feedback // { score: 1, target: null, message: "ok" }
 * ```
 */
import { Context, Effect, Schema } from "effect"
import { display, isPlain } from "../../base/config/Config.ts"

/** The feedback on a step: a score, the right answer (null if there is none) and a message. */
export const Feedback = Schema.Struct({
  score: Schema.Finite,
  target: Schema.NullOr(Schema.String),
  message: Schema.String,
  extra: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
})
export type Feedback = typeof Feedback.Type

/**
 * Tells whether a score or reward can be used: it must be finite, even as a 32-bit number, because losses use these. A larger
 * number would become infinite when it is added or compared.
 */
export const isReward = (value: number): boolean => Number.isFinite(Math.fround(value))

/** Describes what was expected instead of a reward that `isReward` refuses, for error messages. */
export const expectedReward = (found: number): string =>
  Number.isFinite(found) ? "a number from -3.4e38 to 3.4e38" : "a finite number"

type Rest = Partial<Omit<Feedback, "score">>

/** The feedback that an env may return: the current form, or an older one, which is accepted with a warning. */
export type FeedbackInput =
  | Feedback
  | (Rest & { readonly correct: boolean | number })
  | (Rest & { readonly is_correct: boolean | number })

const numberOf = (value: unknown): number | undefined => {
  if (typeof value === "boolean") return value ? 1 : 0
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value
  return typeof number === "number" && Number.isFinite(number) ? number : undefined
}

const textOf = (value: unknown): string | null =>
  value === undefined || value === null ? null : typeof value === "string" ? value : (JSON.stringify(value) ?? null)

const isPresent = (value: unknown): boolean => value !== undefined && value !== null

/**
 * Converts any value to feedback. `warning` reports that the value has an older form or no valid score; otherwise it is null.
 */
export const fromForeign = (value: unknown): { readonly feedback: Feedback; readonly warning: string | null } => {
  const fields = isPlain(value) ? value : {}
  const key = ["score", "correct", "is_correct", "isCorrect"].find((name) => isPresent(fields[name]))
  const raw = key === undefined ? undefined : fields[key]
  const score = numberOf(raw)
  const { extra } = fields
  const warning = (): string | null => {
    if (key === undefined) return `feedback without a score counts as 0: ${display(value)}`
    if (score === undefined) return `feedback whose "${key}" is not a number counts as 0: ${display(raw)}`
    return key === "score" ? null : `feedback with "${key}" is the older form; write "score": 1 or 0`
  }
  return {
    feedback: {
      score: score ?? 0,
      target: textOf(fields["target"]),
      message: textOf(fields["message"]) ?? (typeof value === "string" ? value : ""),
      ...(isPlain(extra) ? { extra } : {}),
    },
    warning: warning(),
  }
}

/** The warnings that were logged so far. Each warning is logged once per type of env. */
export const Warned = Context.Reference<Set<string>>("effect-rl/task/Warned", { defaultValue: () => new Set() })

/** Reads the feedback of an env of this type. If it has an older form, logs a warning once. */
export const readFeedback = (type: string, input: FeedbackInput): Effect.Effect<Feedback> => {
  // A program without types may return a score as a text. Such feedback is read like an older form.
  if ("score" in input && typeof input.score === "number") return Effect.succeed(input)
  const { feedback, warning } = fromForeign(input)
  if (warning === null) return Effect.succeed(feedback)
  const text = `Envs of type "${type}": ${warning}`
  return Effect.flatMap(Warned, (warned) => {
    if (warned.has(text)) return Effect.succeed(feedback)
    warned.add(text)
    return Effect.as(Effect.logWarning(text), feedback)
  })
}
