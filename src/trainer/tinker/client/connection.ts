/**
 * Sends requests to a server of Tinker's protocol, and sends each again after failures that may pass: no answer, time-outs, 408,
 * 429 and 5xx. All requests can be sent twice: their numbers tell the server that it knows them.
 */
import { Clock, Context, Deferred, Effect, Redacted, Schema } from "effect"
import { isPlain } from "../../../base/config/plain.ts"
import { jsonValue, oneLine } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import type { LmError } from "../../../agents/lm/LmError.ts"
import { type BytesAnswer, type BytesRequest, requestBytes } from "../../../agents/lm/providers/httpBytes.ts"
import { retryAfterOf } from "../../../agents/lm/providers/http.ts"
import { keyOf, withoutKey } from "../../../agents/lm/providers/keys.ts"
import { baseUrlOf, type Server } from "../../../agents/lm/providers/Server.ts"
import * as HttpClient from "effect/http/HttpClient"
import { type TinkerError, tinkerError } from "./TinkerError.ts"
import { RequestFailed } from "../wire/responses.ts"

/** The delays in seconds between the attempts of a request. */
export const TinkerDelays = Context.Reference<ReadonlyArray<number>>("effect-rl/tinker/TinkerDelays", {
  defaultValue: () => [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30],
})

/** The server to connect with. */
export interface TinkerAddress {
  /** The address, such as `http://127.0.0.1:8000`. */
  readonly baseUrl: string
  /** The key, or `${NAME}` for the environment variable that holds it. A server on this computer may need none. */
  readonly apiKey?: Redacted.Redacted | null
  /** The time limit of an attempt in seconds. The server may hold an answer back for 45 seconds. @default 120 */
  readonly timeoutS?: number
  /** The size limit of an answer in megabytes. Answers to requests for few numbers have smaller limits. @default 64 */
  readonly maxAnswerMb?: number
}

export interface Connection {
  readonly server: Server
  readonly delays: ReadonlyArray<number>
  /** Fails when the client gives up on the server. Then all requests fail. */
  readonly gaveUp: Deferred.Deferred<never, TinkerError>
}

/** The environment variable of Tinker's own key, which is only sent to Tinker's own servers. */
const ownVariable = "TINKER_API_KEY"
const isOwn = ({ hostname }: URL): boolean => /(^|\.)thinkingmachines\.(dev|ai)$/.test(hostname)

const fromLm = ({ reason, message }: LmError): TinkerError => {
  if (reason === "unauthorised" || reason === "rejected" || reason === "malformed") return tinkerError(reason, message)
  return tinkerError("unavailable", message)
}

/** Checks an address and finds its key. This sends nothing yet. */
export const connect = Effect.fnUntraced(function* ({
  baseUrl: address,
  apiKey = null,
  timeoutS = 120,
  maxAnswerMb = 64,
}: TinkerAddress): Effect.fn.Return<Connection, TinkerError, HttpClient.HttpClient> {
  const model = "tinker"
  const url = yield* Effect.mapError(baseUrlOf(model, address), fromLm)
  // `baseUrlOf` adds the path of OpenAI's protocol to an address without a path.
  url.pathname = `${new URL(address).pathname.replace(/\/+$/, "")}/api/v1`
  const key = yield* Effect.mapError(keyOf(model, apiKey, isOwn(url) ? ownVariable : null), fromLm)
  const client = yield* HttpClient.HttpClient
  const server: Server = {
    model,
    client,
    baseUrl: url,
    key,
    keyHeader: "x-api-key",
    headers: {},
    timeoutS,
    maxAnswerBytes: maxAnswerMb * 1e6,
  }
  return { server, delays: yield* TinkerDelays, gaveUp: yield* Deferred.make<never, TinkerError>() }
})

const isFailure = Schema.is(RequestFailed)

/** The longest message of a server that is quoted. */
const longestQuote = 500

/** Returns a text with words of the server as a short line without the key, which the server may repeat. */
export const quote = ({ server: { key } }: Pick<Connection, "server">, text: string): string =>
  oneLine(withoutKey(text, key)).slice(0, longestQuote)

/** Returns the message of a server in the body of a failure. */
const quoted = (connection: Connection, body: unknown, text: string): string => {
  const found = isFailure(body) && typeof body.error === "string" ? body.error : undefined
  const detail = isPlain(body) && typeof body["detail"] === "string" ? body["detail"] : undefined
  return quote(connection, found ?? detail ?? text)
}

/** The most lists and objects in an answer in JSON. */
const mostLists = 2 ** 20

/** Parses an answer in JSON; returns undefined for one that is not JSON, or that has too many lists. */
export const jsonIn = (bytes: Uint8Array): unknown => {
  try {
    return jsonValue(utf8.decode(bytes), mostLists)
  } catch {
    return undefined
  }
}

/** The most bytes of an answer besides its numbers, and the most bytes of a number in JSON. */
const usualBytes = 2 ** 20
const numberBytes = 32

/** Limits the size of answers to what so many numbers need. */
export const expecting = (connection: Connection, numbers: number): Connection => {
  const maxAnswerBytes = Math.min(connection.server.maxAnswerBytes, usualBytes + numberBytes * numbers)
  return { ...connection, server: { ...connection.server, maxAnswerBytes } }
}

/** Makes the error for an answer whose status is not 200. */
export const refusalOf = (connection: Connection, path: string, { status, bytes }: BytesAnswer): TinkerError => {
  const { server } = connection
  const body = jsonIn(bytes)
  const named = isFailure(body) ? (body.param ?? null) : null
  const param = named === null ? null : quote(connection, named)
  const place = `${server.baseUrl.origin}${server.baseUrl.pathname}/${path}`
  const message = `${place} answered ${status}: ${quoted(connection, body, utf8.decode(bytes.subarray(0, 4096)))}`
  if (status === 401) {
    const hint = server.key === null ? "no key was sent; set api_key: ${NAME}" : `the key came from ${server.key.from}`
    return tinkerError("unauthorised", `${message}; ${hint}`)
  }
  if (status === 404) return tinkerError("notFound", message, param)
  const isTemporary = status === 408 || status === 410 || status === 429 || status >= 500
  return tinkerError(isTemporary ? "unavailable" : "rejected", message, param)
}

/** Makes the error for a request that was accepted, and whose outcome is a failure. */
export const failureOf = (connection: Connection, path: string, body: typeof RequestFailed.Type): TinkerError => {
  const problem = quoted(connection, body, JSON.stringify(body.error))
  const message = `${connection.server.baseUrl.origin}: ${path}: ${problem}`
  return tinkerError(body.category === "user" ? "rejected" : "failed", message)
}

export const malformed = (connection: Connection, path: string, problem: string): TinkerError =>
  tinkerError(
    "malformed",
    `${connection.server.baseUrl.origin}: ${path}: cannot use the answer: ${quote(connection, problem)}`,
  )

/** The statuses that `send` returns, besides 200. All others are failures. */
type Expected = ReadonlyArray<number>

interface Failed {
  readonly error: TinkerError
  readonly mayPass: boolean
  readonly seconds: number | undefined
}

/** Sends a request once. */
const sendOnce = (connection: Connection, request: BytesRequest, expected: Expected) =>
  Effect.gen(function* () {
    const answer = yield* Effect.mapError(requestBytes(connection.server, request), (error): Failed => {
      const mayPass = error.reason === "unavailable"
      return { error: fromLm(error), mayPass, seconds: undefined }
    })
    if (answer.status === 200 || expected.includes(answer.status)) return answer
    const error = refusalOf(connection, request.path, answer)
    const now = yield* Clock.currentTimeMillis
    const failed: Failed = {
      error,
      mayPass: error.reason === "unavailable",
      seconds: retryAfterOf(answer.headers, now),
    }
    return yield* Effect.fail(failed)
  })

/** The longest delay that a server can ask for, in seconds. */
const longestDelay = 60

/** Sends a request until it is answered by 200 or an expected status, or until an attempt fails for good. */
const sendAgain = (
  connection: Connection,
  request: BytesRequest,
  expected: Expected,
  attempts: number,
): Effect.Effect<BytesAnswer, TinkerError> =>
  Effect.catch(sendOnce(connection, request, expected), ({ error, mayPass, seconds }) => {
    const delay = connection.delays[attempts]
    if (!mayPass || delay === undefined) return Effect.fail(error)
    const wait = Math.min(longestDelay, Math.max(delay, seconds ?? 0))
    const again = Effect.andThen(
      Effect.sleep(`${wait} seconds`),
      sendAgain(connection, request, expected, attempts + 1),
    )
    // One failure is nothing to report, but a server that was never started would be waited for in silence.
    if (attempts !== 1) return again
    const rest = connection.delays.slice(attempts).reduce((sum, each) => sum + each, 0)
    return Effect.andThen(Effect.logWarning(`${error.message}; trying again for ${Math.ceil(rest)} seconds`), again)
  })

/**
 * Sends a request until it is answered by 200 or an expected status. Fails if the server refuses it, after the last attempt, or
 * if the client gives up on the server: also where it cannot be interrupted.
 */
export const send = (
  connection: Connection,
  request: BytesRequest,
  expected: Expected = [],
): Effect.Effect<BytesAnswer, TinkerError> =>
  Effect.raceFirst(Deferred.await(connection.gaveUp), sendAgain(connection, request, expected, 0))

const encoded = (body: unknown): Uint8Array => utf8.encode(JSON.stringify(body))

export const jsonRequest = (path: string, body: unknown, accept = "application/json"): BytesRequest => ({
  path,
  body: encoded(body),
  contentType: "application/json",
  accept,
})

/** Tells whether a text of an answer, such as a name that is kept in a file, contains the key. */
const repeatsKey = ({ server: { key } }: Connection, value: unknown): boolean =>
  key !== null &&
  isPlain(value) &&
  Object.values(value).some((item) => typeof item === "string" && item.includes(Redacted.value(key.secret)))

/** Decodes an answer in JSON. Its texts do not contain the key, so that they can be kept and shown. */
export const decodeJson = <S extends Schema.Codec<unknown, unknown>>(
  connection: Connection,
  path: string,
  schema: S,
  value: unknown,
): Effect.Effect<S["Type"], TinkerError> =>
  repeatsKey(connection, value)
    ? Effect.fail(malformed(connection, path, "it repeats the API key"))
    : Effect.mapError(Schema.decodeUnknownEffect(schema)(value), ({ message }) => malformed(connection, path, message))

/** Sends a request whose answer is complete at once. */
export const call = <S extends Schema.Codec<unknown, unknown>>(
  connection: Connection,
  path: string,
  body: unknown,
  schema: S,
): Effect.Effect<S["Type"], TinkerError> =>
  Effect.flatMap(send(expecting(connection, 0), jsonRequest(path, body)), ({ bytes }) =>
    decodeJson(connection, path, schema, jsonIn(bytes)),
  )
