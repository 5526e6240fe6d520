/**
 * Answers requests of JSON-RPC by the Model Context Protocol, as servers of OpenEnv do: `tools/list` and `tools/call`, and
 * the methods that open and close a session.
 */
import { Effect, Scope } from "effect"
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { jsonValue } from "../../base/text/text.ts"
import { mostLists } from "../../spread/openenv/messages.ts"
import type { EnvSession, EnvSessions } from "./EnvSessions.ts"

const codes = {
  parseError: -32700,
  invalidRequest: -32600,
  noMethod: -32601,
  invalidParams: -32602,
  internal: -32603,
  server: -32000,
} as const

type RequestId = string | number | null

/** A request that was checked. */
interface Call {
  readonly id: RequestId
  readonly method: string
  readonly params: Plain
}

const succeeded = (id: RequestId, result: unknown): Plain => ({ jsonrpc: "2.0", id, result })

const failed = (id: RequestId, code: keyof typeof codes, message: string, data: unknown = null): Plain => ({
  jsonrpc: "2.0",
  id,
  error: { code: codes[code], message, data },
})

const keys = ["jsonrpc", "method", "params", "id"]

const callOf = (request: Plain): Call | string => {
  const { jsonrpc, method, params = {}, id = null } = request
  if (jsonrpc !== "2.0") return 'jsonrpc: expected "2.0"'
  if (typeof method !== "string") return "method: expected a text"
  if (!isPlain(params)) return "params: expected an object"
  if (id !== null && typeof id !== "string" && !(typeof id === "number" && Number.isInteger(id)))
    return "id: expected a text, a whole number or null"
  const extra = Object.keys(request).find((key) => !keys.includes(key))
  return extra === undefined ? { id, method, params } : `expected only the keys ${keys.join(", ")}`
}

/** Opens a session for calls over HTTP, which lasts until it is closed or idle. */
const openSession = Effect.fnUntraced(function* (sessions: EnvSessions, { id }: Call, scope: Scope.Scope) {
  const session = yield* Scope.provide(sessions.begin(), scope)
  if (session === undefined) {
    const counts = { active_sessions: sessions.active, max_sessions: sessions.limits.most }
    return failed(id, "server", capacityMessage(sessions), counts)
  }
  yield* sessions.makeClosable(session)
  return succeeded(id, { session_id: session.id })
})

/** Says that no more sessions can be opened. */
export const capacityMessage = ({ active, limits }: EnvSessions): string =>
  `Server at capacity: ${active}/${limits.most} sessions active. Cannot accept new connections.`

const unknownSession = (id: RequestId, wanted: string): Plain =>
  failed(id, "invalidParams", `Unknown session_id: ${wanted.slice(0, 100)}`)

const closeSession = Effect.fnUntraced(function* (sessions: EnvSessions, { id, params }: Call) {
  const { session_id: wanted } = params
  if (typeof wanted !== "string" || wanted === "")
    return failed(id, "invalidParams", "Invalid params - 'session_id' is required")
  const session = sessions.find(wanted)
  if (session === undefined) return unknownSession(id, wanted)
  if (!session.isClosable)
    return failed(id, "invalidRequest", "Cannot close active WebSocket-managed session via MCP method")
  yield* sessions.inTurn(session, session.close)
  return succeeded(id, { session_id: wanted, closed: true })
})

const listTools = ({ env }: EnvSessions, { id }: Call): Plain =>
  env.tools.length === 0
    ? failed(id, "internal", "Environment does not support MCP")
    : succeeded(id, {
        tools: env.tools.map(({ name, description, parameters }) => ({ name, description, inputSchema: parameters })),
      })

const callTool = Effect.fnUntraced(function* (sessions: EnvSessions, { id, params }: Call, session: EnvSession) {
  const { name, arguments: parameters = {} } = params
  if (sessions.env.tools.length === 0) return failed(id, "internal", "Environment does not support MCP")
  if (typeof name !== "string" || name === "") return failed(id, "invalidParams", "Missing 'name' in params")
  if (!isPlain(parameters)) return failed(id, "invalidParams", "arguments: expected an object")
  const answer = yield* sessions.call(session, { name, parameters })
  return "problem" in answer ? failed(id, "internal", answer.problem) : succeeded(id, answer)
})

/** Calls a tool in a session of its own, which ends with the call. */
const callOnce = (sessions: EnvSessions, call: Call) =>
  Effect.gen(function* () {
    const session = yield* sessions.begin()
    return session === undefined
      ? failed(call.id, "server", capacityMessage(sessions))
      : yield* callTool(sessions, call, session)
  }).pipe(Effect.scoped)

/** Calls a tool in the session that a request names. */
const callIn = Effect.fnUntraced(function* (sessions: EnvSessions, call: Call, wanted: string) {
  const session = sessions.find(wanted)
  if (session === undefined) return unknownSession(call.id, wanted)
  const calling = Effect.suspend(() =>
    // An earlier request may have closed it.
    sessions.find(wanted) === undefined
      ? Effect.succeed(unknownSession(call.id, wanted))
      : callTool(sessions, call, session),
  )
  return yield* sessions.inTurn(session, calling)
})

/**
 * Answers a request. `own` is the session of the WebSocket that it came by, whose turn it is; without it, `scope` holds the
 * sessions that are opened.
 */
export const answerCall = (
  sessions: EnvSessions,
  request: Plain,
  own: EnvSession | undefined,
  scope?: Scope.Scope,
): Effect.Effect<Plain> => {
  const call = callOf(request)
  if (typeof call === "string") return Effect.succeed(failed(null, "invalidRequest", `Invalid request: ${call}`))
  const { id, method, params } = call
  const answer = Effect.gen(function* () {
    if (method === "openenv/session/create") {
      if (own !== undefined) return succeeded(id, { session_id: own.id })
      return scope === undefined ? failed(id, "noMethod", method) : yield* openSession(sessions, call, scope)
    }
    if (method === "openenv/session/close") return yield* closeSession(sessions, call)
    if (method === "tools/list") return listTools(sessions, call)
    if (method !== "tools/call") return failed(id, "noMethod", `Method not found: ${method.slice(0, 100)}`)
    if (own !== undefined) return yield* callTool(sessions, call, own)
    const { session_id: wanted } = params
    return yield* typeof wanted === "string" && wanted !== ""
      ? callIn(sessions, call, wanted)
      : callOnce(sessions, call)
  })
  return answer.pipe(
    Effect.catch(({ message }) => Effect.succeed(failed(id, "internal", message))),
    Effect.catchDefect((defect) =>
      Effect.as(Effect.logError("a request failed", defect), failed(id, "internal", "the environment failed")),
    ),
  )
}

/** Answers a text that should be a request of JSON-RPC. */
export const answerCallText = (
  sessions: EnvSessions,
  text: string,
  own: EnvSession | undefined,
  scope?: Scope.Scope,
): Effect.Effect<Plain> => {
  let request: unknown
  try {
    request = jsonValue(text, mostLists)
  } catch {
    return Effect.succeed(failed(null, "parseError", "Parse error"))
  }
  return isPlain(request)
    ? answerCall(sessions, request, own, scope)
    : Effect.succeed(failed(null, "parseError", "Parse error"))
}
