/**
 * Routes the requests of agents to the sessions of a gateway: `/sessions/ID/v1/…` in OpenAI's and Anthropic's protocols,
 * `/sessions/ID/reward` and `/sessions/ID/end`. `listen-node.ts` serves this with Node.
 */
import { Clock, Effect, type Scope, Semaphore } from "effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { type HostGuard, refusedBy } from "../../base/trust/hostGuard.ts"
import { isPlain, type Plain } from "../../base/config/plain.ts"
import type { RawProtocol } from "../lm/RawExchange.ts"
import { spanOfRequest, underCaller } from "../lm/spans.ts"
import { answerCall, doNotRetry } from "./answerCall.ts"
import { badRequest, GatewayError, gatewayError, internalError } from "./GatewayError.ts"
import { expectJson, jsonBody } from "./jsonBody.ts"
import { countTokens } from "./countTokens.ts"
import { formOf, modelList, modelNamed } from "./modelList.ts"
import { chatCompletions } from "./protocols/chatCompletions.ts"
import type { ClientProtocol } from "./protocols/ClientProtocol.ts"
import { messages } from "./protocols/messages.ts"
import { openAiFailure } from "./protocols/openAiFailure.ts"
import { responses } from "./protocols/responses.ts"
import { counted, type Session, type Sessions, setReward, unknownSession } from "./Sessions.ts"

export interface GatewayApp {
  readonly sessions: Sessions
  readonly guard: HostGuard
  /** The largest size of a request's body in bytes. */
  readonly maxBodyBytes: number
  /** The largest size of the bodies that are read at the same time, in bytes. */
  readonly maxReadingBytes: number
  /** The largest number of requests that are answered at the same time. */
  readonly maxRequests: number
  /** How clients open sessions; left out if only this program opens them. */
  readonly openings?: Openings
}

/** How clients of a gateway open sessions. */
export interface Openings {
  /** The names of models that a request without a session is told. */
  readonly models: ReadonlyArray<string>
  /** Fails if a key is not the gateway's own. */
  readonly checkKey: (key: string | undefined) => Effect.Effect<void, GatewayError>
  /** Opens the session of a request with a new id, if the key is the gateway's own. */
  readonly byUse: (id: string, key: string | undefined) => Effect.Effect<Session, GatewayError>
  /**
   * Opens the session that a request to `/sessions` describes, whose key was checked. `host` is the name and port by which the
   * client addresses the gateway. Returns the body of the answer.
   */
  readonly byRequest: (body: Plain, host: string) => Effect.Effect<object, GatewayError>
}

/** A gateway that answers requests. */
interface ServedGateway extends GatewayApp {
  /** Limits the bytes of bodies that are read at the same time. */
  readonly reading: Semaphore.Semaphore
}

type Response = HttpServerResponse.HttpServerResponse
type Answering = Effect.Effect<Response, GatewayError, HttpServerRequest.HttpServerRequest | Scope.Scope>

const json = (value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response =>
  HttpServerResponse.text(JSON.stringify(value), { status, contentType: "application/json", headers })

/** The protocols in which agents call models, by the path of their requests. */
const protocols: Readonly<Record<string, { readonly name: RawProtocol; readonly protocol: ClientProtocol }>> = {
  "/v1/chat/completions": { name: "chat", protocol: chatCompletions },
  "/v1/responses": { name: "responses", protocol: responses },
  "/v1/messages": { name: "messages", protocol: messages },
}

/** Headers with which clients choose features of a protocol, and which its servers need. */
const passedHeaders = ["anthropic-beta", "anthropic-version", "openai-beta"]

const passedHeadersOf = ({ headers }: HttpServerRequest.HttpServerRequest): Readonly<Record<string, string>> =>
  Object.fromEntries(
    passedHeaders.flatMap((name) => {
      const value = headers[name]
      return value === undefined ? [] : [[name, value] as const]
    }),
  )

const keyOf = ({ headers }: HttpServerRequest.HttpServerRequest): string | undefined =>
  headers["x-api-key"] ?? /^Bearer (.+)$/i.exec(headers["authorization"] ?? "")?.[1]

const isPost = ({ method }: HttpServerRequest.HttpServerRequest): boolean => method === "POST"

const noRoute = gatewayError(
  404,
  "unknown_url",
  "expected one of /sessions/ID/v1/chat/completions, /v1/responses, /v1/messages, /v1/messages/count_tokens, " +
    "/v1/embeddings, /v1/models, /sessions/ID/reward and /sessions/ID/end",
)

const invalidBody = (status: number, message: string): GatewayError => gatewayError(status, "invalid_body", message)

const plainBody = Effect.fnUntraced(function* ({ maxBodyBytes, reading }: ServedGateway) {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const length = Number(headers["content-length"] ?? maxBodyBytes)
  const most = length >= 0 && length <= maxBodyBytes ? length : 0
  const body = yield* reading.withPermits(most)(jsonBody(maxBodyBytes, invalidBody))
  return isPlain(body) ? body : yield* badRequest("expected a JSON object as the body")
})

/** Answers a request for the list of models, or for one of them. */
const answerModels = (
  models: ReadonlyArray<string>,
  path: string,
  { headers }: HttpServerRequest.HttpServerRequest,
): Effect.Effect<Response, GatewayError> => {
  const name = decodedId(path.slice("/v1/models/".length)) ?? ""
  const form = formOf(headers)
  return path === "/v1/models"
    ? Effect.succeed(json(modelList(models, form)))
    : Effect.map(modelNamed(name, models, form), (model) => json(model))
}

const isOfModels = (path: string, { method }: HttpServerRequest.HttpServerRequest): boolean =>
  method === "GET" && /^\/v1\/models(\/|$)/.test(path)

/** Answers a request that is not recorded. If the session ends meanwhile, the request is interrupted. */
const unrecorded = (session: Session, answer: Effect.Effect<string, GatewayError>): Answering =>
  Effect.flatMap(Clock.currentTimeMillis, (nowMillis) =>
    Effect.map(counted(session, { nowMillis, size: null }, answer), (text) =>
      HttpServerResponse.text(text, { contentType: "application/json" }),
    ),
  )

/** Answers a request to a session, at the path below `/sessions/ID`. */
const answerIn = (gateway: ServedGateway, session: Session, path: string): Answering =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const call = Object.hasOwn(protocols, path) ? protocols[path] : undefined
    if (call !== undefined && isPost(request)) {
      const body = yield* plainBody(gateway)
      const caller = spanOfRequest(request.headers)
      return yield* answerCall(session, { ...call, body, headers: passedHeadersOf(request), caller })
    }
    if (isOfModels(path, request)) return yield* answerModels(session.models, path, request)
    if (path === "/v1/messages/count_tokens" && isPost(request)) {
      return yield* unrecorded(session, countTokens(session, yield* plainBody(gateway), passedHeadersOf(request)))
    }
    if (path === "/v1/embeddings" && isPost(request)) {
      if (session.embed === null)
        return yield* gatewayError(404, "no_embeddings", "the session's model computes no embeddings")
      const embedding = session.embed(yield* plainBody(gateway))
      return yield* unrecorded(session, underCaller(spanOfRequest(request.headers), embedding))
    }
    if (path === "/reward" && isPost(request)) {
      const { reward } = yield* plainBody(gateway)
      yield* setReward(session, reward)
      return json({ reward: session.reward })
    }
    if (path === "/end" && isPost(request)) {
      yield* gateway.sessions.end(session, "agent")
      return json({ ended: true })
    }
    return yield* noRoute
  })

/** Finds the session of a request. A request with a new id may open it. */
const sessionOf = ({ sessions, openings }: GatewayApp, id: string, key: string | undefined) =>
  openings === undefined || sessions.isKnown(id) ? sessions.find(id, key) : openings.byUse(id, key)

const postRoutes = [...Object.keys(protocols), "/v1/messages/count_tokens", "/v1/embeddings", "/reward", "/end"]

/** Answers a request to the session with this id, at the path below `/sessions/ID`. */
const answerAt = (gateway: ServedGateway, id: string, path: string): Answering =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const { openings, sessions } = gateway
    const isList = isOfModels(path, request)
    if (!isList && !(postRoutes.includes(path) && isPost(request))) return yield* noRoute
    const mayOpen = openings !== undefined && !sessions.isKnown(id)
    if (isList && mayOpen) {
      yield* openings.checkKey(keyOf(request))
      return yield* answerModels(openings.models, path, request)
    }
    // There is nothing to end. A wrong address must not become a session without calls.
    if (mayOpen && path === "/end") return yield* Effect.andThen(openings.checkKey(keyOf(request)), unknownSession(id))
    // A page of another site can send GET requests and other content types. They must not open a session.
    if (mayOpen) yield* expectJson(request, invalidBody)
    return yield* answerIn(gateway, yield* sessionOf(gateway, id, keyOf(request)), path)
  })

const decodedId = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

const answerTo = (gateway: ServedGateway, path: string): Answering =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const refused = refusedBy(gateway.guard, request.headers)
    if (refused !== undefined) return yield* gatewayError(refused.status, "wrong_host", refused.message)
    if (path === "/health") return json({ status: "ok", sessions: gateway.sessions.size })
    if (path === "/sessions" && isPost(request) && gateway.openings !== undefined) {
      yield* gateway.openings.checkKey(keyOf(request))
      return json(yield* gateway.openings.byRequest(yield* plainBody(gateway), request.headers["host"] ?? ""))
    }
    const [, name, rest] = /^\/sessions\/([^/]+)(\/.*)$/.exec(path) ?? []
    const id = name === undefined ? undefined : decodedId(name)
    if (id === undefined) return yield* noRoute
    return yield* answerAt(gateway, id, rest)
  })

/** Makes the response to a request that failed, in the form of the protocol that its path belongs to. */
const failed = (error: GatewayError, path: string): Response => {
  const known = Object.entries(protocols).find(([end]) => path.endsWith(end) || path.includes(`${end}/`))
  const body = known === undefined ? openAiFailure(error) : known[1].protocol.failure(error)
  const { status, retryAfter } = error
  return json(body, status, retryAfter === undefined ? doNotRetry : { "retry-after": String(retryAfter) })
}

/** Makes the app that answers one request. If the client disconnects, its request is interrupted. */
export const makeApp = (options: GatewayApp) => {
  // A body of the largest size must have room.
  const most = Math.max(options.maxReadingBytes, options.maxBodyBytes)
  const gateway: ServedGateway = { ...options, reading: Semaphore.makeUnsafe(most) }
  let answering = 0
  const busy = new GatewayError({
    status: 429,
    code: "too_many_requests",
    message: `the gateway answers at most ${gateway.maxRequests} requests at the same time; try again later`,
    retryAfter: 1,
  })
  return Effect.gen(function* () {
    const { url } = yield* HttpServerRequest.HttpServerRequest
    const path = url.replace(/\?.*$/s, "")
    if (answering >= gateway.maxRequests) return failed(busy, path)
    yield* Effect.acquireRelease(
      Effect.sync(() => void answering++),
      () => Effect.sync(() => void answering--),
    )
    return yield* answerTo(gateway, path).pipe(
      Effect.catch((error) => Effect.succeed(failed(error, path))),
      Effect.catchDefect((defect) =>
        Effect.as(Effect.logError("a request failed", defect), failed(internalError, path)),
      ),
    )
  })
}
