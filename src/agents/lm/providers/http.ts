/**
 * Sends one HTTP request to a model server and reads the answer, whole or as events. Every failure becomes an
 * `LmError`: its message is one line without secrets, and its reason says whether a retry may help.
 */
import { Clock, Context, Effect, Option, Redacted, Schema, Stream, Tracer } from "effect"
import { jsonText } from "../../../base/text/jsonText.ts"
import * as Sse from "effect/encoding/Sse"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import type * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as UrlParams from "effect/http/UrlParams"
import { joined } from "../../../base/text/bytes.ts"
import { isPlain } from "../../../base/config/Config.ts"
import { innermostCause, oneLine, parsedJson } from "../../../base/text/text.ts"
import type { Completion } from "../Chat.ts"
import { withoutKey } from "./keys.ts"
import { LmError, lmError } from "../LmError.ts"
import type { RawExchange } from "../RawExchange.ts"
import { traceparent } from "../spans.ts"
import type { Server } from "./Server.ts"
import { utf8 } from "../../../base/text/utf8.ts"

/** Returns an address without its query, which may contain a secret. */
const shown = (url: URL): string => `${url.origin}${url.pathname}`

/**
 * Returns the first `length` characters of a text from the server, without the API key. The key is removed before the text is
 * cut, because a part of a key would not be found.
 */
const clip = ({ key }: Server, text: string, length = 300): string => {
  const safe = withoutKey(text, key)
  return safe.length <= length ? safe : `${safe.slice(0, length)}…`
}

export const failure = (
  server: Server,
  reason: LmError["reason"],
  message: string,
  retryAfter?: number,
  more: Pick<LmError, "promptTooLong"> = {},
): LmError =>
  lmError(server.model, reason, oneLine(withoutKey(message, server.key)), {
    attempts: 1,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...more,
  })

/** Makes an error whose message is the server's address followed by the problem. */
const failureAt = (server: Server, reason: LmError["reason"], problem: string): LmError =>
  failure(server, reason, `${shown(server.baseUrl)}${problem}`)

/**
 * Finds the error message in the body of a failed response, under any of the keys that servers use; undefined if there is
 * none.
 */
const messageIn = (body: unknown, depth = 0): string | undefined => {
  if (typeof body === "string") return body
  // No server nests its message this deeply. Without a limit, the recursion could exhaust the stack.
  if (depth > 8) return undefined
  if (Array.isArray(body)) return messageIn(body[0], depth + 1)
  if (!isPlain(body)) return undefined
  for (const key of ["error", "message", "detail", "msg"]) {
    const message = messageIn(body[key], depth + 1)
    if (message !== undefined) return message
  }
  return undefined
}

const withoutTags = (text: string): string =>
  text.replace(/<(style|script)\b[\s\S]*?<\/\1>|<[^>]*>/gi, " ").replace(/[^\S\n]+/g, " ")

const codeOf = (body: unknown): unknown => (isPlain(body) && isPlain(body.error) ? body.error.code : undefined)

/** Makes the error for a response whose status is not 2xx. */
const refusal = (server: Server, status: number, text: string, retryAfter?: number, url = server.baseUrl): LmError => {
  const json = parsedJson(text)
  const body = json === undefined ? withoutTags(text) : json
  const message = clip(server, (messageIn(body) ?? "").trim())
  const problem = `${shown(url)} answered ${status}${message === "" ? "" : `: ${message}`}`
  if (status === 401 || status === 403) {
    const { key } = server
    const hint = key === null ? "no key was sent, set api_key: ${NAME} to send one" : `the key came from ${key.from}`
    return failure(server, "unauthorised", `${problem}; ${hint}`)
  }
  // An account without credit has the same status (429) as too many requests, but waiting does not help.
  const isTemporary = status === 408 || (status === 429 && codeOf(body) !== "insufficient_quota") || status >= 500
  if (isTemporary) return failure(server, "unavailable", problem, retryAfter)
  const more = codeOf(body) === "context_length_exceeded" ? { promptTooLong: true } : {}
  return failure(server, "rejected", problem, undefined, more)
}

/** The JSON body of a response in which the server reports a failure instead of an answer. */
export interface FailureBody {
  readonly error: unknown
}

/** Makes the error for a failure that is reported in a response with status 200, or in the middle of a stream. */
export const refusedInBody = (server: Server, body: FailureBody): LmError => {
  const code = codeOf(body)
  const text = JSON.stringify(body)
  if (typeof code === "number" && code >= 400 && code < 600) return refusal(server, code, text)
  return failureAt(server, "unavailable", ` reported a failure: ${clip(server, messageIn(body) ?? text)}`)
}

/**
 * Returns the number of seconds to wait before a retry, from the headers (a number or a date); undefined if they have none.
 */
export const retryAfterOf = (
  headers: Readonly<Record<string, string | undefined>>,
  now: number,
): number | undefined => {
  const milliseconds = Number(headers["retry-after-ms"] ?? Number.NaN)
  if (milliseconds >= 0 && milliseconds < Infinity) return milliseconds / 1000
  const header = headers["retry-after"]?.trim() ?? ""
  if (/^\d{1,9}(\.\d+)?$/.test(header)) return Number(header)
  const date = Date.parse(header)
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000)
}

export const unreachable = (server: Server, url: URL, { reason }: HttpClientError.HttpClientError): LmError => {
  if (reason._tag !== "TransportError") {
    return failure(server, "rejected", `${shown(url)}: the request cannot be sent: ${reason.message}`)
  }
  const cause = clip(server, innermostCause(reason.cause) || "no answer")
  return failure(server, "unavailable", `${shown(url)} cannot be reached: ${cause}`)
}

/** Properties of an answer that are not part of its completion. */
export interface AnswerFacts {
  /** Whether the answer has a text part, even an empty one. */
  readonly hasContent: boolean
  /** The reason for which the model declined; empty if it did not decline. */
  readonly refusal: string
  /** The reason why the answer ended, as the server names it; null if the server sent none. */
  readonly finish: string | null
}

/**
 * Returns the completion. Fails if it must not be scored: a filter withheld it, the model declined, or it has neither a text
 * nor a tool call. The error has the token usage, because the server bills it.
 */
export const answered = (
  server: Server,
  completion: Completion,
  { hasContent, refusal, finish }: AnswerFacts,
): Effect.Effect<Completion, LmError> => {
  const fail = (reason: LmError["reason"], problem: string) => {
    const error = failureAt(server, reason, `: ${problem}`)
    return Effect.fail(new LmError({ ...error, message: error.message, usage: completion.usage }))
  }
  if (refusal !== "") return fail("refused", `the model declined: ${clip(server, refusal)}`)
  if (completion.finishReason === "content_filter") {
    return fail("refused", `a filter withheld the answer or a part of it (${finish ?? "content_filter"})`)
  }
  // Accept an empty answer with the reason `length`: it was cut off while the model was thinking.
  if (hasContent || completion.toolCalls.length > 0 || completion.finishReason === "length") {
    return Effect.succeed(completion)
  }
  return fail(
    "malformed",
    `the answer is empty (finish reason ${finish ?? "none"}); expected a text or a call of a tool`,
  )
}

/** Makes the error for a connection that broke while an answer arrived. */
export const broken = (server: Server, problem: string): LmError =>
  failureAt(server, "unavailable", ` stopped in the middle of its answer: ${problem}`)

export const timedOut = (server: Server): LmError =>
  failureAt(server, "unavailable", ` did not finish its answer within ${server.timeoutS} s (timeout_s)`)

const brokenBy = (server: Server) => (error: HttpClientError.HttpClientError) =>
  broken(server, clip(server, innermostCause(error.reason.cause) || error.reason._tag))

/** The largest number of bytes to read from the body of a failed response; error messages show fewer. */
const failureBytes = 16 * 1024

/** Returns the beginning of the body of a failed response, without the key. */
const beginningOf = (server: Server, response: HttpClientResponse.HttpClientResponse): Effect.Effect<string, LmError> =>
  Effect.suspend(() => {
    const keyLength = server.key === null ? 0 : Redacted.value(server.key.secret).length
    const most = failureBytes + keyLength
    let read = 0
    return response.stream.pipe(
      Stream.takeUntil(({ length }) => (read += length) >= most),
      Stream.runCollect,
      Effect.map((chunks) => {
        const safe = withoutKey(utf8.decode(joined(chunks).subarray(0, most)), server.key)
        // The text may have been cut within a key. That part of the key is shorter than the key.
        return read < most ? safe : safe.slice(0, Math.max(0, safe.length - keyLength))
      }),
      Effect.mapError(brokenBy(server)),
    )
  })

/** Streams the body of an answer, and fails once it is longer than `maxAnswerBytes`, before it fills the memory. */
const bodyOf = (server: Server, response: HttpClientResponse.HttpClientResponse): Stream.Stream<Uint8Array, LmError> =>
  Stream.suspend(() => {
    const { maxAnswerBytes } = server
    let read = 0
    return Stream.mapEffect(Stream.mapError(response.stream, brokenBy(server)), (chunk) => {
      read += chunk.length
      if (read <= maxAnswerBytes) return Effect.succeed(chunk)
      const problem = ` sent more than ${maxAnswerBytes / 1e6} MB (max_answer_mb); the rest was not read`
      return Effect.fail(failureAt(server, "malformed", problem))
    })
  })

/**
 * Makes a function that decodes UTF-8 piece by piece, and fails on invalid bytes. `more` means that another piece follows.
 */
const textOf = (server: Server) => {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  return (bytes: Uint8Array, more: boolean): Effect.Effect<string, LmError> =>
    Effect.try({
      try: () => decoder.decode(bytes, { stream: more }),
      catch: () => unreadable(server, "expected text in UTF-8", utf8.decode(bytes.subarray(0, 1000))),
    })
}

/**
 * Returns the address of a path at a server. A `path` that begins with `/` replaces the path of the server's address; any
 * other path is appended to it.
 */
export const urlOf = ({ baseUrl }: Server, path: string): URL => {
  const url = new URL(baseUrl)
  url.pathname = path.startsWith("/") ? path : `${url.pathname}/${path}`
  return url
}

/** Makes the request that posts a body as JSON. A passed-on body comes with headers of its program. */
const posting = (
  server: Server,
  path: string,
  body: unknown,
  raw: RawExchange | null,
): HttpClientRequest.HttpClientRequest =>
  HttpClientRequest.bodyText(
    HttpClientRequest.setHeaders(HttpClientRequest.post(urlOf(server, path)), raw?.headers ?? {}),
    JSON.stringify(body),
    "application/json",
  )

export const withKey = ({ key, keyHeader }: Server, request: HttpClientRequest.HttpClientRequest) => {
  if (key === null) return request
  return keyHeader === "authorization"
    ? HttpClientRequest.bearerToken(request, key.secret)
    : HttpClientRequest.setHeader(request, keyHeader, Redacted.value(key.secret))
}

/** The header with the trace of another program, whose call we pass on; a trace of ours is added by the client. */
const passedTrace = Effect.gen(function* () {
  if (!(yield* HttpClient.TracerPropagationEnabled)) return {}
  const value = yield* traceparent
  return value === undefined ? {} : { traceparent: value }
})

/** Returns the context in which requests are sent. */
export const requestContext = (context: Context.Context<never>): Context.Context<never> => {
  const init = Option.getOrUndefined(Context.getOption(context, FetchHttpClient.RequestInit))
  const hasTracer = Context.get(context, Tracer.Tracer) !== Tracer.nativeTracer
  const isDisabled = Context.get(context, HttpClient.TracerDisabledWhen)
  return context.pipe(
    // Do not follow redirections: the key and the prompt must not reach another server.
    Context.add(FetchHttpClient.RequestInit, { ...init, redirect: "manual" }),
    // The query of an address may contain a secret, so traces must hide parameters with any name (`/^/`).
    Context.add(UrlParams.CurrentRedactedNames, [/^/]),
    // Without a tracer there is no trace: nobody would see its spans, and its ids are of no use to a server.
    Context.add(
      HttpClient.TracerPropagationEnabled,
      hasTracer && Context.get(context, HttpClient.TracerPropagationEnabled),
    ),
    Context.add(HttpClient.TracerDisabledWhen, (request) => !hasTracer || isDisabled(request)),
  )
}

/** Sends a request with the server's key. Returns the response if its status is 2xx. */
const send = Effect.fnUntraced(function* (
  server: Server,
  keyless: HttpClientRequest.HttpClientRequest,
  raw: RawExchange | null = null,
) {
  // The program's headers come last, because a feature that it uses may need another version of the protocol.
  const headers = { ...server.headers, ...(yield* passedTrace), ...keyless.headers }
  const request = withKey(server, HttpClientRequest.setHeaders(keyless, headers))
  const response = yield* server.client.execute(request).pipe(
    Effect.updateContext(requestContext),
    Effect.mapError((error) => unreachable(server, new URL(request.url), error)),
  )
  if (response.status >= 200 && response.status < 300) return response
  const text = yield* beginningOf(server, response)
  if (raw !== null) raw.refusal = { status: response.status, text }
  const now = yield* Clock.currentTimeMillis
  return yield* refusal(server, response.status, text, retryAfterOf(response.headers, now), new URL(request.url))
})

/**
 * Makes the error for an answer that cannot be decoded. It may have been damaged during the transfer, so a retry may help.
 */
const unreadable = (server: Server, problem: string, text: string): LmError =>
  failureAt(
    server,
    "malformed",
    `: cannot read the answer: ${problem}, found ${JSON.stringify(clip(server, text, 120))}`,
  )

/** Makes a function that decodes the JSON text of an answer with a Schema. It fails with the reason `malformed`. */
export const read = <S extends Schema.Codec<unknown, unknown>>(
  server: Server,
  schema: S,
): ((text: string) => Effect.Effect<S["Type"], LmError>) => {
  const decode = Schema.decodeUnknownEffect(jsonText(schema))
  return (text) =>
    Effect.mapError(decode(text), (error) => unreadable(server, clip(server, oneLine(error.message)), text))
}

/** Reads the whole body of an answer. A stream costs more, so only a body of unknown length is read as one. */
export const bytesOf = (
  server: Server,
  response: HttpClientResponse.HttpClientResponse,
): Effect.Effect<Uint8Array, LmError> => {
  const length = Number(response.headers["content-length"] ?? Number.NaN)
  return length <= server.maxAnswerBytes && response.headers["content-encoding"] === undefined
    ? Effect.mapBoth(response.arrayBuffer, { onFailure: brokenBy(server), onSuccess: (body) => new Uint8Array(body) })
    : Effect.map(Stream.runCollect(bodyOf(server, response)), joined)
}

const textFrom = (
  server: Server,
  request: HttpClientRequest.HttpClientRequest,
  raw: RawExchange | null = null,
): Effect.Effect<string, LmError> =>
  send(server, request, raw).pipe(
    Effect.flatMap((response) => bytesOf(server, response)),
    Effect.flatMap((bytes) => textOf(server)(bytes, false)),
    Effect.timeoutOrElse({ duration: server.timeoutS * 1000, orElse: () => Effect.fail(timedOut(server)) }),
  )

/** Posts a request, and returns the text of the whole answer. */
export const requestText = (
  server: Server,
  path: string,
  body: unknown,
  raw: RawExchange | null = null,
): Effect.Effect<string, LmError> => textFrom(server, posting(server, path, body, raw), raw)

/** Gets the text at a path, with these parameters in the query. */
export const getText = (
  server: Server,
  path: string,
  query: Readonly<Record<string, string | number>>,
): Effect.Effect<string, LmError> =>
  textFrom(server, HttpClientRequest.setUrlParams(HttpClientRequest.get(urlOf(server, path)), query))

/** A request whose answer is streamed for another program. */
export interface PassedRequest {
  readonly raw: RawExchange
  /** Receives the bytes of the answer. */
  readonly onBytes: (bytes: Uint8Array) => Effect.Effect<void>
}

/**
 * Posts a request, and streams the data of the Server-Sent Events of the answer. `passed` gets the bytes before their events
 * are decoded.
 */
export const requestEvents = (
  server: Server,
  path: string,
  body: unknown,
  passed?: PassedRequest,
): Stream.Stream<string, LmError> =>
  Stream.suspend(() => {
    const raw = passed?.raw ?? null
    const data: Array<string> = []
    const parser = Sse.makeParser((event) => {
      if (event._tag === "Event") data.push(event.data)
    })
    const decode = textOf(server)
    const bytes = Stream.unwrap(
      Effect.map(send(server, posting(server, path, body, raw), raw), (response) => bodyOf(server, response)),
    )
    return (passed === undefined ? bytes : Stream.tap(bytes, passed.onBytes)).pipe(
      Stream.mapEffect((bytes) => decode(bytes, true)),
      Stream.mapEffect((text) => {
        const tooLarge = parser.feed(text)
        return tooLarge === undefined
          ? Effect.succeed(data.splice(0))
          : Effect.fail(unreadable(server, tooLarge.message, text))
      }),
      Stream.flattenIterable,
      Stream.interruptWhen(Effect.andThen(Effect.sleep(server.timeoutS * 1000), Effect.fail(timedOut(server)))),
    )
  })
