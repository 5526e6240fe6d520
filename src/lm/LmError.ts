import { Schema } from "effect"
import { Usage } from "./Chat.ts"

/** A model that gave no answer. It is a failure of the call, never an empty answer that somebody could score. */
export class LmError extends Schema.TaggedError<LmError>()("LmError", {
  model: Schema.String,
  /**
   * - `unauthorised`: the key is missing or wrong
   * - `rejected`: the server won't take the request (4xx), so it isn't tried again
   * - `unavailable`: one try failed in a way that another may not: too many requests, a server's fault, the network, a time-out
   * - `exhausted`: it was tried as often as allowed; `message` says what the last failure was
   * - `budget`: the run has spent what it may
   * - `cache`: the answer was to come from the cache, and isn't there
   * - `malformed`: the server's answer can't be read, is too long, or holds nothing; the next one may be whole
   * - `refused`: the model declined to answer, or a filter withheld what it said; it isn't tried again
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
  /** How often the server was asked. */
  attempts: Schema.Int,
  /** One line for people, without any secret. */
  message: Schema.String,
  /** A setting of the model's config by which it goes on: `budget.calls=200`. */
  remedy: Schema.optionalKey(Schema.String),
  /** In how many seconds the server wants to be asked again, where it says so. */
  retryAfter: Schema.optionalKey(Schema.Finite),
  /** The tokens that the server counted for a response that is no answer: they are billed like those of an answer. */
  usage: Schema.optionalKey(Usage),
}) {}

/** What a filter withheld, or broke off, is no answer, whoever gave it: half of it could be scored as if it were whole. */
export const withheld = (model: string): LmError =>
  new LmError({ model, reason: "refused", attempts: 1, message: `${model}: the answer was withheld by a filter` })

/** Says whether every later call would fail in the same way: the key is wrong, or the budget is spent. */
export const isFinal = (error: { readonly _tag: string }): error is LmError =>
  error._tag === "LmError" && "reason" in error && (error.reason === "unauthorised" || error.reason === "budget")
