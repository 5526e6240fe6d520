/**
 * Defines the messages of OpenEnv, the protocol by which environments are served over WebSockets: a client sends `reset`,
 * `step`, `state` and `close`, and the server answers each of the first three.
 */
import { Option } from "effect"
import * as Schema from "effect/Schema"
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { jsonOf, jsonValue, messageOf, oneLine, shortened, visible } from "../../base/text/text.ts"

/** The result of a reset or a step. */
export interface Observed {
  readonly observation: Plain
  readonly reward: number
  readonly done: boolean
}

/** An error that a server sent instead of a result. */
export interface Refused {
  readonly code: string
  readonly message: string
}

const ObservedData = Schema.Struct({
  observation: Schema.Record(Schema.String, Schema.Unknown),
  reward: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.Finite, Schema.Boolean]))),
  done: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
})

const decodeObserved = Schema.decodeUnknownOption(ObservedData)

/** The largest number of lists and objects in a message. Each takes far more memory than the two characters that it needs. */
export const mostLists = 2 ** 20

/** Shortens a text of the other side for a message in one line. */
export const quoted = (text: string): string => visible(shortened(oneLine(text), 300))

/** Returns a value of JSON as a text. An object may have a key `toString`, so it has no other text than its JSON. */
const textOf = (value: unknown): string =>
  typeof value === "object" && value !== null ? (jsonOf(value) ?? "an object") : String(value)

const messageIn = (data: Plain): string => {
  const { message, errors } = data
  const text = typeof message === "string" ? message : "no message"
  const [first] = Array.isArray(errors) ? errors : []
  if (!isPlain(first) || typeof first["msg"] !== "string") return quoted(text)
  const place = Array.isArray(first["loc"]) ? `${first["loc"].map(textOf).join(".")}: ` : ""
  return quoted(`${text}: ${place}${first["msg"]}`)
}

const observedIn = (data: unknown): Observed | string => {
  const decoded = decodeObserved(data)
  if (Option.isNone(decoded)) {
    const { observation, reward, done } = isPlain(data) ? data : {}
    if (!isPlain(observation)) return "data.observation: expected an object"
    if (done !== undefined && done !== null && typeof done !== "boolean") return "data.done: expected true or false"
    return `data.reward: expected a finite number or null, found ${quoted(textOf(reward))}`
  }
  const { observation, reward = null, done = null } = decoded.value
  return { observation, reward: Number(reward ?? 0), done: done ?? false }
}

/** Reads the answer to a reset or a step; returns what is wrong with it if it is none. */
export const readAnswer = (text: string): Observed | Refused | { readonly problem: string } => {
  let value: unknown
  try {
    value = jsonValue(text, mostLists)
  } catch (error) {
    return {
      problem: `expected JSON, found ${JSON.stringify(quoted(text.slice(0, 120)))} (${quoted(messageOf(error))})`,
    }
  }
  const { type, data } = isPlain(value) ? value : {}
  if (type === "error" && isPlain(data)) {
    return { code: typeof data["code"] === "string" ? quoted(data["code"]) : "UNKNOWN", message: messageIn(data) }
  }
  if (type !== "observation") {
    return {
      problem: `expected a message of the type observation or error, found ${quoted(JSON.stringify(type ?? null))}`,
    }
  }
  const observed = observedIn(data)
  return typeof observed === "string" ? { problem: observed } : observed
}

/** Tells whether an answer is an error of the server. */
export const isRefused = (answer: Observed | Refused): answer is Refused => "code" in answer
