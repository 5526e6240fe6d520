/**
 * Makes one attempt of a call over HTTP. Every failure becomes an `LmError`: its message is one line without secrets,
 * and its reason says whether a retry may help.
 */
import { Clock, Effect, Option, Redacted, Schema, Stream } from "effect"
import { Sse } from "effect/encoding"
import {
  FetchHttpClient,
  HttpClient,
  type HttpClientError,
  HttpClientRequest,
  type HttpClientResponse,
  UrlParams,
} from "effect/http"
import { joined } from "../../config/bytes.ts"
import { isPlain } from "../../config/Config.ts"
import { oneLine } from "../../config/text.ts"
import type { Completion } from "../Chat.ts"
import { type Key, withoutKey } from "./keys.ts"
import { LmError } from "../LmError.ts"
import type { Server } from "./Server.ts"
import { utf8 } from "../../config/utf8.ts"

/** Gives an address without its query, which may hold a secret. */
const shown = (url: URL): string => `${url.origin}${url.pathname}`

/**
 * Gives the beginning of a server's text. The key is removed before the text is cut, so that no part of the key
 * remains.
 */
const clip = ({ key }: Server, text: string, length = 300): string => {
  const safe = withoutKey(text, key)
  return safe.length <= length ? safe : `${safe.slice(0, length)}…`
}

export const failure = (
  server: Server,
  reason: LmError["reason"],
  message: string,
  retryAfter?: number | undefined,
): LmError =>
  new LmError({
    model: server.model,
    reason,
    attempts: 1,
    message: `${server.model}: ${oneLine(withoutKey(message, server.key))}`,
    ...(retryAfter === undefined ? {} : { retryAfter }),
  })

/** Finds the error message in the body of a failed response; servers put the message under different keys. */
const messageIn = (body: unknown, depth = 0): string | undefined => {
  if (typeof body === "string") return body
  if (depth > 8) return undefined
  if (Array.isArray(body)) return messageIn(body[0], depth + 1)
  if (!isPlain(body)) return undefined
  for (const key of ["error", "message", "detail", "msg"]) {
    const message = messageIn(body[key], depth + 1)
    if (message !== undefined) return message
  }
  return undefined
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text.replace(/<(style|script)\b[\s\S]*?<\/\1>|<[^>]*>/gi, " ").replace(/[^\S\n]+/g, " ")
  }
}

const codeOf = (body: unknown): unknown => (isPlain(body) && isPlain(body.error) ? body.error.code : undefined)

/** Gives the error for a response whose status is not 2xx. */
export const refusal = (
  server: Server,
  status: number,
  text: string,
  retryAfter?: number | undefined,
  url: URL = server.baseUrl,
): LmError => {
  const body = parsed(text)
  const message = clip(server, (messageIn(body) ?? "").trim())
  const problem = `${shown(url)} answered ${status}${message === "" ? "" : `: ${message}`}`
  if (status === 401 || status === 403) {
    const { key } = server
    return failure(
      server,
      "unauthorised",
      key === null
        ? `${problem}; no key was sent, set api_key: \${NAME} to send one`
        : `${problem}; the key came from ${key.from}`,
    )
  }
  // An account without credit has the same status (429) as too many requests, but waiting does not help.
  const isTemporary = status === 408 || (status === 429 && codeOf(body) !== "insufficient_quota") || status >= 500
  return isTemporary ? failure(server, "unavailable", problem, retryAfter) : failure(server, "rejected", problem)
}

/** Gives the error for a failure that is reported in the body of a 200, or in the middle of a stream. */
export const refusedInBody = (server: Server, body: { readonly error: unknown }): LmError => {
  const code = codeOf(body)
  const text = JSON.stringify(body)
  return typeof code === "number" && code >= 400 && code < 600
    ? refusal(server, code, text)
    : failure(
        server,
        "unavailable",
        `${shown(server.baseUrl)} reported a failure: ${clip(server, messageIn(body) ?? text)}`,
      )
}

/** Gives the delay in seconds that the response's headers require, given there as a number or a date. */
const retryAfterOf = (headers: Readonly<Record<string, string | undefined>>, now: number): number | undefined => {
  const milliseconds = Number(headers["retry-after-ms"] ?? Number.NaN)
  if (milliseconds >= 0 && milliseconds < Infinity) return milliseconds / 1000
  const header = headers["retry-after"]?.trim() ?? ""
  if (/^\d{1,9}(\.\d+)?$/.test(header)) return Number(header)
  const date = Date.parse(header)
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000)
}

/** Gives the code or message of the innermost cause of an error, e.g. `ECONNREFUSED`. */
const causeOf = (error: unknown): string => {
  let innermost = ""
  for (let cause = error; cause instanceof Error && innermost.length < 300; cause = cause.cause) {
    const inner: unknown = cause instanceof AggregateError ? cause.errors[0] : cause
    const { code } = Object(inner)
    innermost = typeof code === "string" ? code : inner instanceof Error ? inner.message : innermost
  }
  return innermost
}

const unreachable = (server: Server, url: URL, { reason }: HttpClientError.HttpClientError): LmError =>
  reason._tag === "TransportError"
    ? failure(
        server,
        "unavailable",
        `${shown(url)} cannot be reached: ${clip(server, causeOf(reason.cause) || "no answer")}`,
      )
    : failure(server, "rejected", `${shown(url)}: the request cannot be sent: ${reason.message}`)

/** Properties of an answer that its completion does not hold. */
interface AnswerFacts {
  /** Whether the answer has a text part, even an empty one. */
  readonly hasContent: boolean
  /** The reason that the model gave for declining; empty if it did not decline. */
  readonly refusal: string
  /** The reason why the answer ended, in the server's own word; null if the server gave none. */
  readonly finish: string | null
}

/**
 * Gives the completion, or fails if it must not be scored: a filter withheld it, the model declined, or it has neither
 * a text nor a tool call. The error holds the token usage, which the server bills.
 */
export const answered = (
  server: Server,
  completion: Completion,
  { hasContent, refusal, finish }: AnswerFacts,
): Effect.Effect<Completion, LmError> => {
  const at = shown(server.baseUrl)
  const fail = (reason: LmError["reason"], message: string) => {
    const error = failure(server, reason, message)
    return Effect.fail(new LmError({ ...error, message: error.message, usage: completion.usage }))
  }
  if (refusal !== "") return fail("refused", `${at}: the model declined: ${clip(server, refusal)}`)
  if (completion.finishReason === "content_filter") {
    const message = `${at}: a filter withheld the answer or a part of it (${finish ?? "content_filter"})`
    return fail("refused", message)
  }
  // An answer that was cut off while the model was thinking is empty, and marked as incomplete.
  if (hasContent || completion.toolCalls.length > 0 || completion.finishReason === "length") {
    return Effect.succeed(completion)
  }
  const message = `${at}: the answer is empty (finish reason ${finish ?? "none"}); expected a text or a call of a tool`
  return fail("malformed", message)
}

/** Makes the error for a connection that broke while an answer arrived. */
export const broken = (server: Server, problem: string): LmError =>
  failure(server, "unavailable", `${shown(server.baseUrl)} stopped in the middle of its answer: ${problem}`)

const timedOut = (server: Server): LmError =>
  failure(
    server,
    "unavailable",
    `${shown(server.baseUrl)} did not finish its answer within ${server.timeoutS} s (timeout_s)`,
  )

const brokenBy = (server: Server) => (error: HttpClientError.HttpClientError) =>
  broken(server, clip(server, causeOf(error.reason.cause) || error.reason._tag))

/** The number of bytes that are read of the body of a failed response; error messages show fewer. */
const failureBytes = 16 * 1024

const beginningOf = (server: Server, response: HttpClientResponse.HttpClientResponse): Effect.Effect<string, LmError> =>
  Effect.suspend(() => {
    let read = 0
    return response.stream.pipe(
      Stream.takeUntil(({ length }) => (read += length) >= failureBytes),
      Stream.runCollect,
      Effect.map((chunks) => utf8.decode(joined(chunks).subarray(0, failureBytes))),
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
      const message = `${shown(server.baseUrl)} sent more than ${maxAnswerBytes / 1e6} MB (max_answer_mb); the rest was not read`
      return Effect.fail(failure(server, "malformed", message))
    })
  })

/** Decodes UTF-8 piece by piece. Invalid bytes are an error: a replacement character would change the answer. */
const textOf = (server: Server) => {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  return (bytes: Uint8Array, more: boolean): Effect.Effect<string, LmError> =>
    Effect.try({
      try: () => decoder.decode(bytes, { stream: more }),
      catch: () => {
        const begins = utf8.decode(bytes.subarray(0, 1000))
        return unreadable(server, "expected text in UTF-8", begins)
      },
    })
}

/** Sends a request, and gives the response if its status is 2xx. */
const send = Effect.fnUntraced(function* (
  server: Server,
  path: string,
  body: unknown,
): Effect.fn.Return<HttpClientResponse.HttpClientResponse, LmError> {
  const url = new URL(server.baseUrl)
  url.pathname = path.startsWith("/") ? path : `${url.pathname}/${path}`
  const request = HttpClientRequest.post(url, { headers: server.headers }).pipe(
    HttpClientRequest.bodyText(JSON.stringify(body), "application/json"),
    (request) => (server.key === null ? request : withKey(request, server.keyHeader, server.key)),
  )
  const init = yield* Effect.serviceOption(FetchHttpClient.RequestInit)
  const response = yield* server.client.execute(request).pipe(
    // Do not follow redirections: neither the key nor the prompt is meant for another server.
    Effect.provideService(FetchHttpClient.RequestInit, { ...Option.getOrUndefined(init), redirect: "manual" }),
    // The query of an address may hold a secret.
    Effect.provideService(UrlParams.CurrentRedactedNames, [/^/]),
    // Do not send our trace ids to a server.
    Effect.provideService(HttpClient.TracerPropagationEnabled, false),
    Effect.mapError((error) => unreachable(server, url, error)),
  )
  if (response.status >= 200 && response.status < 300) return response
  const text = yield* beginningOf(server, response)
  const now = yield* Clock.currentTimeMillis
  return yield* refusal(server, response.status, text, retryAfterOf(response.headers, now), url)
})

const withKey = (
  request: HttpClientRequest.HttpClientRequest,
  header: Server["keyHeader"],
  { secret }: Key,
): HttpClientRequest.HttpClientRequest =>
  header === "authorization"
    ? HttpClientRequest.bearerToken(request, secret)
    : HttpClientRequest.setHeader(request, header, Redacted.value(secret))

/** Makes the error for an answer that cannot be decoded. It may have been damaged on its way, so a retry may help. */
const unreadable = (server: Server, problem: string, text: string): LmError =>
  failure(
    server,
    "malformed",
    `${shown(server.baseUrl)}: cannot read the answer: ${problem}, found ${JSON.stringify(clip(server, text, 120))}`,
  )

/** Makes a decoder that reads JSON by a Schema. */
export const read = <S extends Schema.Codec<unknown, unknown>>(
  server: Server,
  schema: S,
): ((text: string) => Effect.Effect<S["Type"], LmError>) => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema))
  return (text) =>
    Effect.mapError(decode(text), (error) => unreadable(server, clip(server, oneLine(error.message)), text))
}

/** Sends a request, and gives the text of the whole answer. */
export const whole = (server: Server, path: string, body: unknown): Effect.Effect<string, LmError> =>
  send(server, path, body).pipe(
    Effect.flatMap((response) => Stream.runCollect(bodyOf(server, response))),
    Effect.flatMap((chunks) => textOf(server)(joined(chunks), false)),
    Effect.timeoutOrElse({ duration: server.timeoutS * 1000, orElse: () => Effect.fail(timedOut(server)) }),
  )

/** Sends a request, and streams the data of the Server-Sent Events of the answer. */
export const events = (server: Server, path: string, body: unknown): Stream.Stream<string, LmError> =>
  Stream.suspend(() => {
    const data: Array<string> = []
    const parser = Sse.makeParser((event) => {
      if (event._tag === "Event") data.push(event.data)
    })
    const decode = textOf(server)
    return Stream.unwrap(Effect.map(send(server, path, body), (response) => bodyOf(server, response))).pipe(
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
