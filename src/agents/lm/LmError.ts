/** Defines the error of a failed call of a language model, which providers and middleware return. */
import { Schema } from "effect"
import { Usage } from "./Chat.ts"

/** Reports that a call failed. A failure must never become an empty answer, because that could be scored by mistake. */
export class LmError extends Schema.TaggedError<LmError>()("LmError", {
  model: Schema.String,
  /**
   * - `unauthorised`: the key is missing or wrong
   * - `rejected`: the server refused the request (4xx); it is not retried
   * - `unavailable`: a temporary failure: too many requests, a fault of the server or the network, a time-out
   * - `exhausted`: all retries failed; `message` quotes the last failure
   * - `budget`: the run has spent its budget
   * - `cache`: the answer is not in the cache, or the cache cannot be read or written
   * - `malformed`: the answer cannot be read, is too long, or is empty; it is retried
   * - `refused`: the model declined to answer, or a filter withheld the answer; it is not retried
   */
  reason: Schema.Literals([
    "unauthorised",
    "rejected",
    "unavailable",
    "exhausted",
    "budget",
    "cache",
    "malformed",
    "refused",
  ]),
  /** The number of requests that were sent to the server before the call failed. */
  attempts: Schema.Int,
  /** The error message: one line without secrets, for the user of the program. */
  message: Schema.String,
  /** A setting to change in the model's config so that the run can continue, e.g. `budget.calls=200`. */
  remedy: Schema.optionalKey(Schema.String),
  /** The delay in seconds that the server requires before the next attempt. */
  retryAfter: Schema.optionalKey(Schema.Finite),
  /** Whether the server refused the request because its prompt leaves no room for an answer. */
  promptTooLong: Schema.optionalKey(Schema.Boolean),
  /** The tokens of a response that is not a usable answer; the server bills them like the tokens of an answer. */
  usage: Schema.optionalKey(Usage),
}) {}

/** Makes an error whose message begins with the model's name. By default `attempts` is 0: no request was sent. */
export const lmError = (
  model: string,
  reason: LmError["reason"],
  problem: string,
  more: Partial<Pick<LmError, "attempts" | "remedy" | "retryAfter" | "promptTooLong">> = {},
): LmError => new LmError({ model, reason, attempts: 0, message: `${model}: ${problem}`, ...more })

/** Returns the message of an error without the name of its model at the beginning. */
export const withoutModel = (model: string, message: string): string =>
  message.startsWith(`${model}: `) ? message.slice(model.length + 2) : message

/** Makes the error for an answer that a content filter withheld or cut short: such an answer must not be scored. */
export const withheld = (model: string): LmError =>
  lmError(model, "refused", "a filter withheld the answer", { attempts: 1 })

/** Tells whether every later call would fail in the same way, because the key is wrong or the budget is spent. */
export const isFinal = (error: { readonly _tag: string }): error is LmError =>
  error._tag === "LmError" && "reason" in error && (error.reason === "unauthorised" || error.reason === "budget")

/** Tells whether a call failed through no fault of the agent: its model could not be reached, or may not be asked. */
export const isOutage = (error: { readonly _tag: string }): error is LmError =>
  isFinal(error) ||
  (error._tag === "LmError" &&
    "reason" in error &&
    ["exhausted", "unavailable", "cache"].includes(String(error.reason)))

/** Tells whether an error means that the run has spent its budget, so that it stops and can be resumed with a larger one. */
export const isSpent = (error: { readonly _tag: string }): boolean =>
  error._tag === "LmError" && "reason" in error && error.reason === "budget"
