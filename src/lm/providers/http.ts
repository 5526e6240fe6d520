/**
 * One try of a call to a model over HTTP, and what can go wrong with it in our words: a line without secrets, and
 * whether another try may do better.
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

/** Nothing but where: the rest of an address may hold a secret. */
const shown = (url: URL): string => `${url.origin}${url.pathname}`

/** The beginning of what was said; the key goes first, lest a half of it stays. */
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

/** The server's own words in the body of a failure, wherever servers put them, but not at any depth. */
const wordsOf = (body: unknown, depth = 0): string | undefined => {
  if (typeof body === "string") return body
  if (depth > 8) return undefined
  if (Array.isArray(body)) return wordsOf(body[0], depth + 1)
  if (!isPlain(body)) return undefined
  for (const key of ["error", "message", "detail", "msg"]) {
    const words = wordsOf(body[key], depth + 1)
    if (words !== undefined) return words
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

/** What a server says by a status and a body that is no answer. */
export const refusal = (
  server: Server,
  status: number,
  text: string,
  retryAfter?: number | undefined,
  url: URL = server.baseUrl,
): LmError => {
  const body = parsed(text)
  const words = clip(server, (wordsOf(body) ?? "").trim())
  const said = `${shown(url)} answered ${status}${words === "" ? "" : `: ${words}`}`
  if (status === 401 || status === 403) {
    const { key } = server
    return failure(
      server,
      "unauthorised",
      key === null
        ? `${said}; no key was sent: api_key: \${NAME} sends one`
        : `${said}; the key is that of ${key.from}`,
    )
  }
  // That an account is empty doesn't pass by waiting, although it is told by the same status as haste.
  const passes = status === 408 || (status === 429 && codeOf(body) !== "insufficient_quota") || status >= 500
  return passes ? failure(server, "unavailable", said, retryAfter) : failure(server, "rejected", said)
}

/** The same, where a server tells of it by 200 and a body, or in the middle of a stream. */
export const refusedInBody = (server: Server, body: { readonly error: unknown }): LmError => {
  const code = codeOf(body)
  const text = JSON.stringify(body)
  return typeof code === "number" && code >= 400 && code < 600
    ? refusal(server, code, text)
    : failure(
        server,
        "unavailable",
        `${shown(server.baseUrl)} told of a failure: ${clip(server, wordsOf(body) ?? text)}`,
      )
}

/** In seconds, from either form that the header has. */
export const retryAfterOf = (
  headers: Readonly<Record<string, string | undefined>>,
  now: number,
): number | undefined => {
  const milliseconds = Number(headers["retry-after-ms"] ?? Number.NaN)
  if (milliseconds >= 0 && milliseconds < Infinity) return milliseconds / 1000
  const said = headers["retry-after"]?.trim() ?? ""
  if (/^\d{1,9}(\.\d+)?$/.test(said)) return Number(said)
  const date = Date.parse(said)
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000)
}

/** The name of what broke, at the bottom of what was caught. */
const causeOf = (error: unknown): string => {
  let found = ""
  for (let cause = error; cause instanceof Error && found.length < 300; cause = cause.cause) {
    const inner: unknown = cause instanceof AggregateError ? cause.errors[0] : cause
    const { code } = Object(inner)
    found = typeof code === "string" ? code : inner instanceof Error ? inner.message : found
  }
  return found
}

const unreachable = (server: Server, url: URL, { reason }: HttpClientError.HttpClientError): LmError =>
  reason._tag === "TransportError"
    ? failure(
        server,
        "unavailable",
        `${shown(url)} can't be reached: ${clip(server, causeOf(reason.cause) || "no answer")}`,
      )
    : failure(server, "rejected", `${shown(url)} can't be asked: ${reason.message}`)

/** Properties of an answer that its completion doesn't hold. */
export interface AnswerFacts {
  /** Whether there was any text at all, if only an empty one. */
  readonly hasContent: boolean
  /** Why the model declined, in its words; empty where it didn't. */
  readonly refusal: string
  /** Why it ended, in the server's word. */
  readonly finish: string | null
}

/**
 * Gives the completion, or fails where it is not an answer: where a filter withheld it, the model declined, or there is
 * neither text nor a call. Otherwise such a completion would be scored. The failure has the usage, which is billed.
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
    const message = `${at}: the answer was withheld or broken off by a filter (${finish ?? "content_filter"})`
    return fail("refused", message)
  }
  // What was cut off while it was thinking is incomplete, and marked as such.
  if (hasContent || completion.toolCalls.length > 0 || completion.finishReason === "length") {
    return Effect.succeed(completion)
  }
  const message = `${at}: the answer holds nothing (finished by ${finish ?? "nothing"}); expected text, or a call of a tool`
  return fail("malformed", message)
}

/** A connection that broke while an answer was being read; it was good so far, so the next may come to its end. */
export const broken = (server: Server, what: string): LmError =>
  failure(server, "unavailable", `${shown(server.baseUrl)} stopped in the middle of its answer: ${what}`)

const timedOut = (server: Server): LmError =>
  failure(
    server,
    "unavailable",
    `${shown(server.baseUrl)} gave no whole answer within ${server.timeoutS} s (timeout_s)`,
  )

const brokenBy = (server: Server) => (error: HttpClientError.HttpClientError) =>
  broken(server, clip(server, causeOf(error.reason.cause) || error.reason._tag))

/** Limits how much of a failure's body is read; messages show less than that. */
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

/** The body of an answer, piece by piece, up to where it is too long: whatever a server sends, the memory holds it. */
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

/** Text of UTF-8, piece by piece. What is something else is no answer: replacing what is wrong would change what was said. */
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

/** The status and headers of an answer that is one. */
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
    // Whoever is named in a redirection isn't who was asked: neither the key nor the prompt is for them.
    Effect.provideService(FetchHttpClient.RequestInit, { ...Option.getOrUndefined(init), redirect: "manual" }),
    // The query of an address may hold a secret.
    Effect.provideService(UrlParams.CurrentRedactedNames, [/^/]),
    // What we trace is no business of a server's.
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

/** What can't be read as an answer; a body that was cut or garbled on its way may be whole the next time. */
const unreadable = (server: Server, why: string, text: string): LmError =>
  failure(
    server,
    "malformed",
    `${shown(server.baseUrl)}: the answer can't be read: ${why}, found ${JSON.stringify(clip(server, text, 120))}`,
  )

/** Text of JSON, by a Schema. */
export const read = <S extends Schema.Codec<unknown, unknown>>(
  server: Server,
  schema: S,
): ((text: string) => Effect.Effect<S["Type"], LmError>) => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema))
  return (text) =>
    Effect.mapError(decode(text), (error) => unreadable(server, clip(server, oneLine(error.message)), text))
}

/** The text of an answer that comes at once. */
export const whole = (server: Server, path: string, body: unknown): Effect.Effect<string, LmError> =>
  send(server, path, body).pipe(
    Effect.flatMap((response) => Stream.runCollect(bodyOf(server, response))),
    Effect.flatMap((chunks) => textOf(server)(joined(chunks), false)),
    Effect.timeoutOrElse({ duration: server.timeoutS * 1000, orElse: () => Effect.fail(timedOut(server)) }),
  )

/** The data of Server-Sent Events, each as it comes. */
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
