/**
 * Serves an env by OpenEnv's protocol: sessions at the WebSockets `/ws` and `/mcp`, single requests at `/reset`, `/step`,
 * `/state` and `/mcp`, and what the env is at `/schema`, `/metadata` and `/health`. `listen-node.ts` serves this with Node.
 */
import { ByteSize, Effect, type Scope } from "effect"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Socket from "effect/socket/Socket"
import { type HostGuard, refusedBy, sameKey } from "../../base/trust/hostGuard.ts"
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { jsonValue, messageOf } from "../../base/text/text.ts"
import { mostLists } from "../../spread/openenv/messages.ts"
import type { ServedEnv, ServedObservation } from "../../spread/openenv/ServedEnv.ts"
import { answerMessage, errorMessage, type MessageAnswer } from "./answerMessage.ts"
import { actionProblem, type EnvSession, type EnvSessions, type InputProblem, resetProblem } from "./EnvSessions.ts"
import { answerCallText, capacityMessage } from "./toolCalls.ts"

/** A server of an env. */
interface EnvApp {
  readonly sessions: EnvSessions
  readonly guard: HostGuard
  /** The key that requests must have, as a bearer token or as the beginning of the path; undefined if they need none. */
  readonly key: string | undefined
  /** The largest size of a body, and of a message of a WebSocket, in bytes. */
  readonly maxMessageBytes: number
  /** Waits until the client of a request, which the platform made from `source`, has read most of what was sent to it. */
  readonly drained: (source: object) => Effect.Effect<void>
  /** Holds the sessions that requests over HTTP open. */
  readonly scope: Scope.Scope
}

type Response = HttpServerResponse.HttpServerResponse

const json = (value: unknown, status = 200): Response =>
  HttpServerResponse.text(JSON.stringify(value), { status, contentType: "application/json" })

const refused = (status: number, detail: unknown): Response => json({ detail }, status)

const wrong = ({ loc, ...problem }: InputProblem, ...at: ReadonlyArray<string>): Response =>
  refused(422, [{ ...problem, loc: ["body", ...at, ...loc] }])

/** Reads the text of a body. Fails with the response to a body that is too large. */
const bodyText = Effect.fnUntraced(function* ({ maxMessageBytes }: EnvApp) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const tooLarge = refused(413, `expected a body of at most ${maxMessageBytes} bytes`)
  if (Number(request.headers["content-length"] ?? 0) > maxMessageBytes) return yield* Effect.fail(tooLarge)
  return yield* request.text.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.fromInputUnsafe(maxMessageBytes)),
    Effect.mapError(() => tooLarge),
  )
})

/** Reads the object of JSON in a body; an empty body is an empty object. Fails with the response to any other body. */
const plainBody = Effect.fnUntraced(function* (app: EnvApp) {
  const text = yield* bodyText(app)
  const value = yield* Effect.try({
    try: () => (text.trim() === "" ? {} : jsonValue(text, mostLists)),
    catch: (error) => wrong({ type: "json_invalid", loc: [], msg: `JSON decode error: ${messageOf(error)}` }),
  })
  return isPlain(value)
    ? value
    : yield* Effect.fail(wrong({ type: "model_attributes_type", loc: [], msg: "Expected an object" }))
})

/** Gives a request a session of its own, which ends with the request. */
const inSession = (
  { sessions }: EnvApp,
  use: (session: EnvSession) => Effect.Effect<ServedObservation, { readonly message: string }>,
): Effect.Effect<Response> =>
  Effect.gen(function* () {
    const session = yield* sessions.begin()
    return session === undefined ? refused(503, capacityMessage(sessions)) : json(yield* use(session))
  }).pipe(
    Effect.catch(({ message }) => Effect.succeed(refused(500, message))),
    Effect.scoped,
  )

const reset = Effect.fnUntraced(function* (app: EnvApp) {
  const body = yield* plainBody(app)
  const problem = resetProblem(body)
  return problem === undefined ? yield* inSession(app, (session) => app.sessions.reset(session, body)) : wrong(problem)
})

/** Answers a step over HTTP. Requests share no session, so it is the first step of a new episode. */
const step = Effect.fnUntraced(function* (app: EnvApp) {
  const { action, ...rest } = yield* plainBody(app)
  if (action === undefined) return wrong({ type: "missing", loc: ["action"], msg: "Field required" })
  if (!isPlain(action)) return wrong({ type: "dict_type", loc: ["action"], msg: "Expected an object" })
  const { sessions } = app
  const problem = actionProblem(sessions.env, action)
  if (problem !== undefined) return wrong(problem, "action")
  const resetWrong = resetProblem(rest)
  if (resetWrong !== undefined) return wrong(resetWrong)
  return yield* inSession(app, (session) =>
    Effect.andThen(sessions.reset(session, rest), () => sessions.step(session, action)),
  )
})

const stateSchema: Plain = {
  title: "State",
  type: "object",
  properties: {
    episode_id: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
    step_count: { type: "integer", minimum: 0, default: 0 },
  },
  additionalProperties: true,
}

const version = "1.0.0"

/** Describes the addresses for programs that look which there are, as `openenv validate` does. */
const openApi = ({ name }: ServedEnv): Plain => ({
  openapi: "3.1.0",
  info: { title: name, version },
  paths: Object.fromEntries(
    Object.entries(routes).map(([path, methods]) => [
      path,
      Object.fromEntries(
        Object.keys(methods).map((method) => [
          method.toLowerCase(),
          { responses: { 200: { description: "The answer" } } },
        ]),
      ),
    ]),
  ),
})

type Answering = Effect.Effect<Response, Response, HttpServerRequest.HttpServerRequest>

/** The answers by path and method. */
const routes: Readonly<Record<string, Readonly<Record<string, (app: EnvApp) => Answering>>>> = {
  "/health": { GET: () => Effect.succeed(json({ status: "healthy" })) },
  "/schema": {
    GET: ({ sessions: { env } }) =>
      Effect.succeed(json({ action: env.actions, observation: env.observations, state: stateSchema })),
  },
  "/metadata": {
    GET: ({ sessions: { env } }) => {
      const { name, description } = env
      const unknown = { readme_content: null, author: null, documentation_url: null }
      return Effect.succeed(json({ name, description, version, ...unknown }))
    },
  },
  "/openapi.json": { GET: ({ sessions: { env } }) => Effect.succeed(json(openApi(env))) },
  "/state": { GET: () => Effect.succeed(json({ episode_id: null, step_count: 0 })) },
  "/reset": { POST: reset },
  "/step": { POST: step },
  "/mcp": {
    POST: (app) =>
      Effect.flatMap(bodyText(app), (text) =>
        Effect.map(answerCallText(app.sessions, text, undefined, app.scope), (answer) => json(answer)),
      ),
  },
}

/** What a WebSocket does with a message, and what it sends instead of a session if there is none. */
interface SocketKind {
  readonly answer: (
    sessions: EnvSessions,
    session: EnvSession,
    text: string | Uint8Array,
  ) => Effect.Effect<MessageAnswer>
  readonly failed: (message: string, more?: Plain) => string
}

const sockets: Readonly<Record<string, SocketKind>> = {
  "/ws": {
    answer: answerMessage,
    failed: (message, more) => errorMessage(more === undefined ? "SESSION_ERROR" : "CAPACITY_REACHED", message, more),
  },
  "/mcp": {
    answer: (sessions, session, text) =>
      Effect.map(
        sessions.inTurn(session, answerCallText(sessions, typeof text === "string" ? text : "", session)),
        (answer) => ({ reply: JSON.stringify(answer), ends: false }),
      ),
    failed: (message, data = {}) =>
      JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32000, message, data } }),
  },
}

/** Answers the messages of a WebSocket until the client or the session ends. */
const converse = ({ sessions, drained }: EnvApp, { answer, failed }: SocketKind, socket: Socket.Socket) =>
  Effect.gen(function* () {
    const { source } = yield* HttpServerRequest.HttpServerRequest
    const { pull } = yield* socket.reader
    const { write } = yield* socket.writer
    const end = (text: string) => Effect.andThen(write(text), write(new Socket.CloseEvent(1000, "")))
    const session = yield* Effect.result(sessions.begin())
    if (session._tag === "Failure") return yield* end(failed(session.failure.message))
    const own = session.success
    if (own === undefined) {
      const counts = { active_sessions: sessions.active, max_sessions: sessions.limits.most }
      return yield* end(failed(capacityMessage(sessions), counts))
    }
    const answers = Effect.gen(function* () {
      for (;;) {
        for (const message of yield* pull) {
          const { reply, ends } = yield* answer(sessions, own, message)
          if (reply !== null) yield* write(reply)
          if (ends) return yield* write(new Socket.CloseEvent(1000, ""))
          // A client that reads nothing must not fill the memory with answers.
          yield* drained(source)
        }
      }
    })
    const idle = Effect.andThen(
      sessions.idle(own),
      Effect.suspend(() => end(failed(`the session was not used for ${sessions.limits.idleSeconds} seconds`))),
    )
    yield* Effect.raceFirst(answers, idle)
  }).pipe(
    // The client has hung up.
    Effect.catchTag("SocketError", () => Effect.void),
    Effect.scoped,
  )

/** Returns the path of a request below the key, if the key is right. Reference clients cannot send headers, but know a base address. */
const pathOf = (app: EnvApp, { url, headers }: HttpServerRequest.HttpServerRequest): string | undefined => {
  const path = url.replace(/\?.*$/s, "")
  if (app.key === undefined) return path
  const bearer = /^Bearer (.+)$/i.exec(headers["authorization"] ?? "")?.[1]
  if (sameKey(bearer, app.key)) return path
  const [, first, rest] = /^\/([^/]+)(\/.*)$/s.exec(path) ?? []
  return sameKey(first, app.key) ? rest : undefined
}

const answerTo = (app: EnvApp): Answering =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const refusal = refusedBy(app.guard, request.headers)
    if (refusal !== undefined) return refused(refusal.status, refusal.message)
    const path = pathOf(app, request)
    if (path === undefined)
      return refused(401, "expected the server's key as a bearer token, or as the beginning of the path")
    if (request.headers["upgrade"]?.toLowerCase() === "websocket") {
      if (!Object.hasOwn(sockets, path)) return refused(404, "Not Found")
      const socket = yield* Effect.mapError(request.upgrade, () => refused(400, "expected a WebSocket"))
      yield* converse(app, sockets[path], socket)
      return HttpServerResponse.empty()
    }
    const methods = Object.hasOwn(routes, path) ? routes[path] : undefined
    if (methods === undefined) return refused(404, "Not Found")
    if (!Object.hasOwn(methods, request.method)) return refused(405, "Method Not Allowed")
    return yield* methods[request.method](app)
  })

/** Makes the app that answers one request. */
export const makeApp = (app: EnvApp) =>
  answerTo(app).pipe(
    Effect.catch((response) => Effect.succeed(response)),
    Effect.catchDefect((defect) =>
      Effect.as(Effect.logError("a request failed", defect), refused(500, "the server failed; its log says why")),
    ),
  )
