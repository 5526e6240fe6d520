/**
 * Asks the Hugging Face hub, or a server that speaks its HTTP API, for what a data set holds, and downloads its files.
 * Failed requests are repeated. Redirections are followed, and the token is sent to no host but the hub's own.
 */
import { Clock, Config, Context, Effect, Option, Redacted, Schema, Stream } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as UrlParams from "effect/http/UrlParams"
import { joined } from "../../config/bytes.ts"
import { sha256 } from "../../config/sha256.ts"
import { innermostCause, oneLine, parsedJson, shortened } from "../../config/text.ts"
import { utf8 } from "../../config/utf8.ts"
import { type LmError, lmError } from "../../lm/LmError.ts"
import { type Retries, persistently } from "../../lm/middleware/retrying.ts"
import { retryAfterOf } from "../../lm/providers/http.ts"
import { type Key, withoutKey } from "../../lm/providers/keys.ts"
import { stream } from "../../rng/Rng.ts"
import { DatasetError } from "../TaskSet.ts"

/** The delays between the attempts of a request; by default those of a model's config. */
export const HubRetries = Context.Reference<Retries>("effect-rl/task/HubRetries", {
  defaultValue: () => ({ maxRetries: 5, startingDelay: 1, backoffFactor: 2, maxDelay: 10, jitter: 0.25 }),
})

/** The address of the hub, if `HF_ENDPOINT` is not set. */
const usualEndpoint = "https://huggingface.co"

/** The seconds in which a server has to begin its answer, and after which a download that has stopped is ended. */
const patience = 60

/** The largest file of a data set in bytes. Files are decoded in memory, one after the other. */
const mostFileBytes = 4 * 2 ** 30 - 1

/** The largest description of a data set in bytes. It names all of its files. */
const mostInfoBytes = 256 * 2 ** 20

/** A hub, as the environment describes it. */
export interface Hub {
  readonly client: HttpClient.HttpClient
  readonly endpoint: URL
  readonly token: Key | null
  readonly retries: Retries
}

/** A file of a data set. Its size and digest are null if the hub does not state them. */
export interface HubFile {
  readonly path: string
  readonly size: number | null
  readonly sha256: string | null
}

/** Describes a revision of a data set. */
export interface HubInfo {
  /** The commit of the revision. */
  readonly sha: string
  readonly files: ReadonlyArray<HubFile>
  /** The header of the data set's README, which may say which files belong to which split. */
  readonly card: unknown
}

const Info = Schema.Struct({
  sha: Schema.String.check(Schema.isPattern(/^[0-9a-f]{40}$/)),
  siblings: Schema.Array(
    Schema.Struct({
      rfilename: Schema.String,
      size: Schema.optional(Schema.NullOr(Schema.Finite)),
      lfs: Schema.optional(Schema.NullOr(Schema.Struct({ sha256: Schema.optional(Schema.String) }))),
    }),
  ),
  cardData: Schema.optional(Schema.Unknown),
})
const decodeInfo = Schema.decodeUnknownEffect(Info)

const variable = (name: string) =>
  Effect.map(
    Effect.orElseSucceed(Config.String(name), () => ""),
    (value) => value.trim(),
  )

const failed = (path: string, problem: string): DatasetError =>
  new DatasetError({ path, message: `${path}: ${problem}` })

/**
 * Reads the hub's address and the token from the environment: `HF_ENDPOINT` and `HF_TOKEN`. Requests are sent by the
 * `HttpClient` that the program provides, or else by `fetch`. `id` is the data set, for error messages.
 */
export const openHub = Effect.fnUntraced(function* (id: string): Effect.fn.Return<Hub, DatasetError> {
  const address = (yield* variable("HF_ENDPOINT")) || usualEndpoint
  const endpoint = URL.parse(address)
  if (endpoint === null || !/^https?:$/.test(endpoint.protocol)) {
    return yield* failed(id, "HF_ENDPOINT: expected an address such as https://huggingface.co, found another text")
  }
  const token = yield* variable("HF_TOKEN")
  // The HTTP client's own error for a wrong header would show the token.
  if (!/^[\x21-\x7e]*$/.test(token)) {
    return yield* failed(id, "HF_TOKEN: expected visible ASCII characters, found whitespace or others in it")
  }
  const provided = yield* Effect.serviceOption(HttpClient.HttpClient)
  const client = Option.isSome(provided)
    ? provided.value
    : yield* Effect.provide(HttpClient.HttpClient, FetchHttpClient.layer)
  const key: Key | null = token === "" ? null : { secret: Redacted.make(token), from: "HF_TOKEN" }
  return { client, endpoint, token: key, retries: yield* HubRetries }
})

/** Returns an address without its query, which may hold a signature. */
const shown = (url: URL): string => `${url.origin}${url.pathname}`

/** Returns the address of a path at the hub, whose own address may have a path, too. */
const urlOf = ({ endpoint }: Hub, path: string, query = ""): URL =>
  new URL(`${endpoint.origin}${endpoint.pathname.replace(/\/$/, "")}${path}${query}`)

const encoded = (path: string): string => path.split("/").map(encodeURIComponent).join("/")

const beginningOf = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<string> =>
  response.stream.pipe(
    Stream.take(1),
    Stream.runCollect,
    Effect.map((chunks) => utf8.decode(joined(chunks).subarray(0, 4096))),
    Effect.orElseSucceed(() => ""),
  )

const messageIn = (text: string): string => {
  const body = parsedJson(text)
  const error: unknown = Object(body).error
  return typeof error === "string" ? error : text.replace(/<[^>]*>/g, " ")
}

/** Explains an answer that says that the data set, its revision or its file is not there for us. */
const refusalOf = (
  { endpoint, token }: Hub,
  { status, headers }: HttpClientResponse.HttpClientResponse,
  revision: string,
): string | undefined => {
  const at = shown(endpoint).replace(/\/$/, "")
  if (headers["x-error-code"] === "RevisionNotFound") {
    return `there is no revision "${revision}" at ${at}; expected a branch, a tag or a commit in hf_revision`
  }
  // The hub gives the same answer for a private data set and for none, so that nobody learns which names are taken.
  if (status !== 401 && status !== 403 && status !== 404) return undefined
  const remedy =
    token === null
      ? "check the name, and set HF_TOKEN if the data set is private or asks for consent"
      : "check the name, and that the token in HF_TOKEN may read it"
  return `there is no such data set at ${at} that we may read (${status}); ${remedy}`
}

/** Gets an address, and follows redirections. The token is sent only to the hub's own host. */
const responseOf = Effect.fnUntraced(function* (hub: Hub, id: string, first: URL) {
  const init = yield* Effect.serviceOption(FetchHttpClient.RequestInit)
  let url = first
  for (let redirections = 0; redirections <= 10; redirections++) {
    const plain = HttpClientRequest.get(url)
    const isOwn = hub.token !== null && url.origin === hub.endpoint.origin
    const request = isOwn ? HttpClientRequest.bearerToken(plain, hub.token.secret) : plain
    const at = shown(url)
    const response = yield* hub.client.execute(request).pipe(
      Effect.provideService(FetchHttpClient.RequestInit, { ...Option.getOrUndefined(init), redirect: "manual" }),
      Effect.provideService(UrlParams.CurrentRedactedNames, [/^/]),
      Effect.provideService(HttpClient.TracerPropagationEnabled, false),
      Effect.mapError(({ reason }) =>
        lmError(id, "unavailable", `${at} cannot be reached: ${innermostCause(reason.cause) || reason._tag}`, {
          attempts: 1,
        }),
      ),
      Effect.timeoutOrElse({
        duration: patience * 1000,
        orElse: () =>
          Effect.fail(lmError(id, "unavailable", `${at} did not answer within ${patience} s`, { attempts: 1 })),
      }),
    )
    const next = response.status >= 300 && response.status < 400 ? response.headers["location"] : undefined
    const target = next === undefined ? null : URL.parse(next, url.href)
    if (target === null) return { response, at }
    url = target
  }
  return yield* lmError(id, "rejected", `${shown(first)} is redirected too often`, { attempts: 1 })
})

/** Downloads an address once. Temporary failures have the reason `unavailable` or `malformed`. */
const once = Effect.fnUntraced(function* (
  hub: Hub,
  id: string,
  revision: string,
  url: URL,
  most: number,
): Effect.fn.Return<Uint8Array, LmError> {
  const { response, at } = yield* responseOf(hub, id, url)
  const { status, headers } = response
  if (status < 200 || status >= 300) {
    const text = shortened(oneLine(withoutKey(messageIn(yield* beginningOf(response)), hub.token)).trim(), 300)
    const problem = `${at} answered ${status}${text === "" ? "" : `: ${text}`}`
    if (status === 408 || status === 429 || status >= 500) {
      const retryAfter = retryAfterOf(headers, yield* Clock.currentTimeMillis)
      const more = retryAfter === undefined ? {} : { retryAfter }
      return yield* lmError(id, "unavailable", problem, { attempts: 1, ...more })
    }
    return yield* lmError(id, "rejected", refusalOf(hub, response, revision) ?? problem, { attempts: 1 })
  }
  const chunks: Array<Uint8Array> = []
  let read = 0
  yield* response.stream.pipe(
    Stream.mapError((error) =>
      lmError(id, "unavailable", `${at} broke off: ${innermostCause(error.reason.cause) || error.reason._tag}`, {
        attempts: 1,
      }),
    ),
    Stream.timeoutOrElse({
      duration: patience * 1000,
      orElse: () => Stream.fail(lmError(id, "unavailable", `${at} sent nothing for ${patience} s`, { attempts: 1 })),
    }),
    Stream.runForEach((chunk) => {
      chunks.push(chunk)
      read += chunk.length
      if (read <= most) return Effect.void
      return Effect.fail(lmError(id, "rejected", `${at} is longer than ${most} bytes`, { attempts: 1 }))
    }),
  )
  return joined(chunks)
})

/** Repeats an attempt as `HubRetries` says, and converts the last error to one of data sets. */
const repeated = <A>(hub: Hub, id: string, url: URL, attempt: Effect.Effect<A, LmError>, retries = hub.retries) =>
  persistently(retries, id, attempt, (retry) =>
    Effect.sync(() => stream(0, "hub", url.pathname).uniformAt(retry)),
  ).pipe(
    Effect.map(([value]) => value),
    Effect.mapError(({ message, reason }) => ({
      error: new DatasetError({ path: id, message: withoutKey(message, hub.token) }),
      isUnreachable: reason === "exhausted",
    })),
  )

/**
 * Describes a revision of a data set. Its failure says whether the hub could not be reached, in which case a saved
 * answer may do. `isPatient: false` tries only once.
 */
export const infoOf = (hub: Hub, id: string, revision: string, isPatient = true) => {
  const url = urlOf(hub, `/api/datasets/${encoded(id)}/revision/${encodeURIComponent(revision)}`, "?blobs=true")
  const attempt = once(hub, id, revision, url, mostInfoBytes).pipe(
    Effect.flatMap((bytes) =>
      Effect.mapError(decodeInfo(parsedJson(utf8.decode(bytes))), (error) =>
        lmError(id, "malformed", `${shown(url)}: cannot read the answer: ${oneLine(error.message)}`, { attempts: 1 }),
      ),
    ),
    Effect.map(({ sha, siblings, cardData }): HubInfo => ({
      sha,
      card: cardData,
      files: siblings.map(({ rfilename, size, lfs }) => ({
        path: rfilename,
        size: size ?? null,
        sha256: lfs?.sha256 ?? null,
      })),
    })),
  )
  return repeated(hub, id, url, attempt, isPatient ? hub.retries : { ...hub.retries, maxRetries: 0 })
}

/** Downloads a file of a commit. A file whose size or digest is not as the hub states it is downloaded again. */
export const fileOf = (hub: Hub, id: string, sha: string, file: HubFile): Effect.Effect<Uint8Array, DatasetError> => {
  const url = urlOf(hub, `/datasets/${encoded(id)}/resolve/${sha}/${encoded(file.path)}`)
  if ((file.size ?? 0) > mostFileBytes) {
    return Effect.fail(failed(id, `${file.path} has ${file.size} bytes; expected at most ${mostFileBytes}`))
  }
  const attempt = Effect.gen(function* () {
    const bytes = yield* once(hub, id, sha, url, mostFileBytes)
    const damaged = (problem: string) => lmError(id, "malformed", `${shown(url)}: ${problem}`, { attempts: 1 })
    if (file.size !== null && bytes.length !== file.size) {
      return yield* damaged(`expected ${file.size} bytes, found ${bytes.length}`)
    }
    if (file.sha256 !== null && (yield* sha256(bytes)) !== file.sha256) {
      return yield* damaged("the content does not match its digest")
    }
    return bytes
  })
  return Effect.mapError(repeated(hub, id, url, attempt), ({ error }) => error)
}
