/** Answers the messages of a WebSocket of OpenEnv: `reset`, `step`, `state`, `mcp` and `close`. */
import { Effect } from "effect"
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { jsonOf, jsonValue, messageOf } from "../../base/text/text.ts"
import type { EnvError } from "../../base/EnvError.ts"
import { mostLists } from "../../spread/openenv/messages.ts"
import { actionProblem, type EnvSession, type EnvSessions, type InputProblem, resetProblem } from "./EnvSessions.ts"
import { answerCall } from "./toolCalls.ts"

/** The codes of the errors that a server sends. */
type ErrorCode =
  | "INVALID_JSON"
  | "UNKNOWN_TYPE"
  | "VALIDATION_ERROR"
  | "EXECUTION_ERROR"
  | "CAPACITY_REACHED"
  | "FACTORY_ERROR"
  | "SESSION_ERROR"

/** An answer, and whether the session ends with it. A message `close` has no answer. */
export interface MessageAnswer {
  readonly reply: string | null
  readonly ends: boolean
}

const reply = (message: Plain): MessageAnswer => ({ reply: JSON.stringify(message), ends: false })

/** Makes the message that tells a client about an error. */
export const errorMessage = (code: ErrorCode, message: string, more: Plain = {}): string =>
  JSON.stringify({ type: "error", data: { message, code, ...more } })

const failed = (code: ErrorCode, message: string, more: Plain = {}): MessageAnswer => ({
  reply: errorMessage(code, message, more),
  ends: false,
})

const wrong = (...errors: ReadonlyArray<InputProblem>): MessageAnswer =>
  failed("VALIDATION_ERROR", "Invalid message", { errors })

const missingData: InputProblem = { type: "missing", loc: ["data"], msg: "Field required" }

/** Returns what is wrong with the form of a message: keys that it may not have, or data that is no object. */
const formProblem = (message: Plain, keys: ReadonlyArray<string>): InputProblem | undefined => {
  const extra = Object.keys(message).find((key) => !keys.includes(key))
  if (extra !== undefined)
    return { type: "extra_forbidden", loc: [extra.slice(0, 100)], msg: "Extra inputs are not permitted" }
  const { data = {} } = message
  return isPlain(data) ? undefined : { type: "dict_type", loc: ["data"], msg: "Expected an object" }
}

const executed = (effect: Effect.Effect<object, EnvError>): Effect.Effect<MessageAnswer> =>
  effect.pipe(
    Effect.map((data) => reply({ type: "observation", data })),
    Effect.catch(({ message }) => Effect.succeed(failed("EXECUTION_ERROR", message))),
    Effect.catchDefect((defect) =>
      Effect.as(Effect.logError("a request failed", defect), failed("EXECUTION_ERROR", "the environment failed")),
    ),
  )

/** Shows the type of a message, which may be any value of JSON. */
const shownType = (type: unknown): string =>
  (typeof type === "string" ? type : (jsonOf(type) ?? String(type))).slice(0, 100)

const answerParsed = (sessions: EnvSessions, session: EnvSession, message: Plain): Effect.Effect<MessageAnswer> => {
  const { type, data } = message
  const hasData = type === "reset" || type === "step" || type === "mcp"
  if (!hasData && type !== "state" && type !== "close") {
    return Effect.succeed(failed("UNKNOWN_TYPE", `Unknown message type: ${shownType(type)}`))
  }
  const problem = formProblem(message, hasData ? ["type", "data"] : ["type"])
  if (problem !== undefined) return Effect.succeed(wrong(problem))
  if (type === "close") return Effect.succeed({ reply: null, ends: true })
  if (type === "state") {
    const { episodeId, steps } = session
    return Effect.succeed(reply({ type: "state", data: { episode_id: episodeId, step_count: steps } }))
  }
  if (!isPlain(data) && type !== "reset") return Effect.succeed(wrong(missingData))
  const own = isPlain(data) ? data : {}
  if (type === "mcp")
    return Effect.map(answerCall(sessions, own, session), (answer) => reply({ type: "mcp", data: answer }))
  const input = type === "reset" ? resetProblem(own) : actionProblem(sessions.env, own)
  if (input !== undefined) return Effect.succeed(wrong(input))
  return executed(type === "reset" ? sessions.reset(session, own) : sessions.step(session, own))
}

const parsed = (text: string): { readonly value: unknown } | { readonly problem: string } => {
  try {
    return { value: jsonValue(text, mostLists) }
  } catch (error) {
    return { problem: messageOf(error) }
  }
}

/** Answers a message of a session. Bytes, and JSON that is no object, end the session. */
export const answerMessage = Effect.fnUntraced(function* (
  sessions: EnvSessions,
  session: EnvSession,
  text: string | Uint8Array,
): Effect.fn.Return<MessageAnswer> {
  if (typeof text !== "string")
    return { reply: errorMessage("SESSION_ERROR", "expected a text, found bytes"), ends: true }
  const json = parsed(text)
  if ("problem" in json) return failed("INVALID_JSON", `Invalid JSON: ${json.problem}`)
  if (!isPlain(json.value)) return { reply: errorMessage("SESSION_ERROR", "expected an object of JSON"), ends: true }
  return yield* sessions.inTurn(session, answerParsed(sessions, session, json.value))
})
