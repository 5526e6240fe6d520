/**
 * Sends requests to servers that are not models, such as the Hugging Face hub, and reads the answers. Each request has a time
 * limit and a size limit, and follows redirections, unless `redirections` keeps them to the server's own origin. After a
 * temporary failure it is repeated, if it may be sent twice. Errors are one line without secrets. The authorization is sent
 * only to the server's own host.
 */
import { Clock, Context, Effect, Option, Redacted, Stream } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as UrlParams from "effect/http/UrlParams"
import { joined } from "../../base/text/bytes.ts"
import { innermostCause, oneLine, parsedJson, shortened } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { stream } from "../../base/rng/Rng.ts"
import { type LmError, lmError, withoutModel } from "./LmError.ts"
import { type Retries, persistently } from "./middleware/retrying.ts"
import { retryAfterOf } from "./providers/http.ts"
import { withoutSecrets } from "./providers/keys.ts"

/** The delays between the attempts of a request; by default those of a model's config. */
export const ServerRetries = Context.Reference<Retries>("effect-rl/lm/ServerRetries", {
  defaultValue: () => ({ maxRetries: 5, startingDelay: 1, backoffFactor: 2, maxDelay: 10, jitter: 0.25 }),
})

/**
 * The delays for the first request to a server. They are short: if the server cannot be reached, its address is probably
 * wrong.
 */
export const firstRetries = Effect.map(ServerRetries, (usual) => ({
  ...usual,
  maxRetries: Math.min(2, usual.maxRetries),
}))

/** The default number of seconds in which a server must begin its answer, and for which an answer may pause. */
const usualPatience = 60

/** The number of bytes in a request's body that give the server another second. */
const bytesASecond = 50_000

/** The number of bytes that are read of a refusal. */
const refusalBytes = 16 * 1024

/** A server, with what its requests need. */
export interface Site {
  /** The name of the requested thing, with which error messages begin. */
  readonly name: string
  readonly client: HttpClient.HttpClient
  readonly origin: string
  /** The value of the header `authorization`; null if it is not sent. */
  readonly authorization: Redacted.Redacted | null
  /** Other texts that no message may show, such as the password inside the authorization. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  /** Advice for the user if the server itself answers 401 or 403. */
  readonly hint: string
}

export interface ServerAnswer {
  /** The address without its query, which may contain a signature. */
  readonly at: string
  readonly isOwn: boolean
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly bytes: Uint8Array
}

export interface ExchangeOptions {
  /** The largest answer in bytes; 16 MiB by default. */
  readonly mostBytes?: number
  /** The number of seconds in which the server must begin its answer, and for which the answer may pause; 60 by default. */
  readonly patience?: number
  /** The statuses, besides 2xx, that do not count as failures. */
  readonly accepted?: ReadonlyArray<number>
  /** Whether the request may be sent twice; by default, only GET and PUT may. */
  readonly isRepeatable?: boolean
  readonly retries?: Retries
  /** Whether a redirection may lead to another origin than the server's own; by default, it may. */
  readonly redirections?: "anywhere" | "sameOrigin"
  /** Returns an explanation of a refusal that replaces the server's own message. */
  readonly explain?: (answer: ServerAnswer) => string | undefined
}

const messageIn = (text: string): string => {
  const { error, message }: { readonly error?: unknown; readonly message?: unknown } = Object(parsedJson(text))
  return typeof error === "string"
    ? error
    : typeof message === "string"
      ? message
      : text.replace(/<(?!redacted>)[^>]*>/g, " ")
}

const isTemporary = (status: number): boolean => status === 408 || status === 429 || status >= 500

/** Formats a text of a server for a message: in one line, without secrets, and not too long. */
export const quoted = (site: Site, text: string): string => {
  const secrets = [...(site.authorization === null ? [] : [site.authorization]), ...site.secrets].map(Redacted.value)
  // Remove secrets before and after the message is extracted, because a tag or an escape could be part of a secret.
  const message = withoutSecrets(messageIn(withoutSecrets(text, secrets)), secrets)
  return shortened(oneLine(message).trim(), 300)
}

/** Makes the error for an answer that is a refusal. */
export const refusalOf = (site: Site, answer: ServerAnswer, retryAfter?: number): LmError => {
  const { at, isOwn, status, bytes } = answer
  const text = quoted(site, utf8.decode(bytes))
  const hint = isOwn && (status === 401 || status === 403) && site.hint !== "" ? `; ${site.hint}` : ""
  return lmError(
    site.name,
    isTemporary(status) ? "unavailable" : "rejected",
    `${at} answered ${status}${text === "" ? "" : `: ${text}`}${hint}`,
    { attempts: 1, ...(retryAfter !== undefined && { retryAfter }) },
  )
}

/** Returns the request for the target of a redirection; undefined if it must not be sent there. */
export const redirected = (
  request: HttpClientRequest.HttpClientRequest,
  from: URL,
  { status, headers }: HttpClientResponse.HttpClientResponse,
): HttpClientRequest.HttpClientRequest | undefined => {
  const location = status >= 300 && status < 400 ? headers["location"] : undefined
  const target = location === undefined ? null : URL.parse(location, from.href)
  if (target === null || !/^https?:$/.test(target.protocol)) return undefined
  if (request.method !== "GET" && status !== 307 && status !== 308) return undefined
  const next = HttpClientRequest.setUrl(request, target)
  return target.origin === from.origin ? next : HttpClientRequest.removeHeader(next, "authorization")
}

/** Sends a request once, and reads the answer. */
const once = Effect.fnUntraced(function* (
  site: Site,
  first: HttpClientRequest.HttpClientRequest,
  { mostBytes = 16 * 2 ** 20, patience = usualPatience, accepted = [], redirections, explain }: ExchangeOptions,
): Effect.fn.Return<ServerAnswer, LmError> {
  const fail = (reason: LmError["reason"], problem: string) => lmError(site.name, reason, problem, { attempts: 1 })
  const causeOf = ({ reason }: { readonly reason: { readonly _tag: string; readonly cause?: unknown } }): string =>
    quoted(site, innermostCause(reason.cause) || reason._tag)
  const init = yield* Effect.serviceOption(FetchHttpClient.RequestInit)
  let asked = first
  for (let followed = 0; followed <= 10; followed++) {
    const url = URL.parse(asked.url)
    if (url === null) return yield* fail("rejected", "the server named an address that is none")
    const at = `${url.origin}${url.pathname}`
    const isOwn = url.origin === site.origin
    const isOpen = site.authorization === null || !isOwn || asked.headers["authorization"] !== undefined
    const request = isOpen
      ? asked
      : HttpClientRequest.setHeader(asked, "authorization", Redacted.value(site.authorization))
    const seconds =
      patience + Math.ceil((request.body._tag === "Uint8Array" ? request.body.contentLength : 0) / bytesASecond)
    const response = yield* site.client.execute(request).pipe(
      Effect.provideService(FetchHttpClient.RequestInit, { ...Option.getOrUndefined(init), redirect: "manual" }),
      Effect.provideService(UrlParams.CurrentRedactedNames, [/^/]),
      Effect.provideService(HttpClient.TracerPropagationEnabled, false),
      Effect.mapError((error) => fail("unavailable", `${at} cannot be reached: ${causeOf(error)}`)),
      Effect.timeoutOrElse({
        duration: seconds * 1000,
        orElse: () => Effect.fail(fail("unavailable", `${at} did not answer within ${seconds} s`)),
      }),
    )
    const next = redirected(asked, url, response)
    if (next !== undefined) {
      const { origin } = new URL(next.url)
      if (redirections === "sameOrigin" && origin !== site.origin)
        return yield* fail("rejected", `${at} redirects to ${origin}, where nothing was sent; expected its own answer`)
      asked = next
      continue
    }
    const { status, headers } = response
    const isRight = (status >= 200 && status < 300) || accepted.includes(status)
    const chunks: Array<Uint8Array> = []
    let read = 0
    // For a client in the style of browsers, it is an error that an answer has no body at all, as those to many webhooks.
    const whole = Stream.catchIf(
      response.stream,
      ({ reason }) => reason._tag === "EmptyBodyError",
      () => Stream.empty,
    )
    const body = whole.pipe(
      Stream.mapError((error) => fail("unavailable", `${at} broke off: ${causeOf(error)}`)),
      Stream.timeoutOrElse({
        duration: patience * 1000,
        orElse: () => Stream.fail(fail("unavailable", `${at} sent nothing for ${patience} s`)),
      }),
      Stream.takeUntil((chunk) => {
        chunks.push(chunk)
        read += chunk.length
        return read > (isRight ? mostBytes : refusalBytes)
      }),
      Stream.runDrain,
    )
    if (isRight) {
      yield* body
      if (read > mostBytes) return yield* fail("rejected", `${at} is longer than ${mostBytes} bytes`)
      return { at, isOwn, status, headers, bytes: joined(chunks) }
    }
    yield* Effect.ignore(body)
    const answer = { at, isOwn, status, headers, bytes: joined(chunks).subarray(0, refusalBytes) }
    const explained = explain?.(answer)
    if (explained !== undefined && !isTemporary(status)) return yield* fail("rejected", explained)
    return yield* refusalOf(site, answer, retryAfterOf(headers, yield* Clock.currentTimeMillis))
  }
  return yield* fail("rejected", `${first.url.replace(/[?#].*/, "")} is redirected too often`)
})

/** Sends a request, and decodes the answer with `decode`. If `decode` fails as `malformed`, the request is repeated. */
export const exchange = <A = ServerAnswer>(
  site: Site,
  request: HttpClientRequest.HttpClientRequest,
  options: ExchangeOptions,
  decode: (answer: ServerAnswer) => Effect.Effect<A, LmError>,
): Effect.Effect<A, LmError> =>
  Effect.gen(function* () {
    const attempt = Effect.flatMap(once(site, request, options), decode)
    const { isRepeatable = request.method === "GET" || request.method === "PUT" } = options
    if (!isRepeatable) return yield* attempt
    const path = URL.parse(request.url)?.pathname ?? ""
    const chance = (retry: number) => Effect.sync(() => stream(0, "server", path).uniformAt(retry))
    const [value] = yield* persistently(options.retries ?? (yield* ServerRetries), site.name, attempt, chance)
    return value
  })

/** Returns the message of an error without the name at its beginning. */
export const withoutName = ({ name }: Site, { message }: LmError): string => withoutModel(name, message)
