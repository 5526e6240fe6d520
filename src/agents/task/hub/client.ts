/**
 * Lists the files of a data set on the Hugging Face hub, or on a server with the same HTTP API, and downloads them. The
 * requests are sent by `agents/lm/exchange.ts`.
 *
 * We do not use the package `@huggingface/hub`, because it has 12 MB with its dependencies, and leaves limits, retries and
 * typed errors, which are most of this file, to its caller.
 */
import { Effect, Option, Redacted, Schema } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import { sha256 } from "../../../base/text/sha256.ts"
import { oneLine, parsedJson } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { variable } from "../../../base/config/variables.ts"
import { type ServerAnswer, exchange, ServerRetries, type Site } from "../../lm/exchange.ts"
import { type LmError, lmError } from "../../lm/LmError.ts"
import { type Retry, RetrySink } from "../../lm/middleware/retrying.ts"
import { DatasetError } from "../TaskSet.ts"

/** The address of the hub, if `HF_ENDPOINT` is not set. */
const usualEndpoint = "https://huggingface.co"

/** The largest size of a data set's file in bytes. Files are decoded in memory, one after the other. */
const mostFileBytes = 4 * 2 ** 30 - 1

/** The largest size of a data set's description in bytes. It lists all files of the data set. */
const mostInfoBytes = 256 * 2 ** 20

/** A hub, from the environment. The token is only sent to the hub's own host. */
export interface Hub {
  readonly site: Site
  readonly endpoint: URL
}

/** A file of a data set. Its size and digest are null if the hub does not send them. */
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
  /** The header of the data set's README, which may assign files to splits. */
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

const failed = (path: string, problem: string): DatasetError =>
  new DatasetError({ path, message: `${path}: ${problem}` })

/**
 * Reads the hub's address and the token from the environment: `HF_ENDPOINT` and `HF_TOKEN`. Requests are sent with the
 * `HttpClient` that the program provides, otherwise with `fetch`. `id` names the data set in error messages.
 */
export const openHub = Effect.fnUntraced(function* (id: string): Effect.fn.Return<Hub, DatasetError> {
  const address = (yield* variable("HF_ENDPOINT")) || usualEndpoint
  const endpoint = URL.parse(address)
  if (endpoint === null || !/^https?:$/.test(endpoint.protocol)) {
    return yield* failed(id, "HF_ENDPOINT: expected an address such as https://huggingface.co, found another text")
  }
  const token = yield* variable("HF_TOKEN")
  // Check the token here, because the HTTP client's own error for an invalid header would show it.
  if (!/^[\x21-\x7e]*$/.test(token)) {
    return yield* failed(id, "HF_TOKEN: expected visible ASCII characters, found whitespace or others in it")
  }
  const provided = yield* Effect.serviceOption(HttpClient.HttpClient)
  const client = Option.isSome(provided)
    ? provided.value
    : yield* Effect.provide(HttpClient.HttpClient, FetchHttpClient.layer)
  const secret = Redacted.make(token)
  const site: Site = {
    name: id,
    client,
    origin: endpoint.origin,
    authorization: token === "" ? null : Redacted.make(`Bearer ${token}`),
    secrets: [secret],
    hint: "check that the token in HF_TOKEN may write there",
  }
  return { site, endpoint }
})

/** Returns an address without its query, which may contain a signature. */
const shown = (url: URL): string => `${url.origin}${url.pathname}`

/** Returns the address of a path at the hub, whose own address may have a path, too. */
const urlOf = ({ endpoint }: Hub, path: string, query = ""): URL =>
  new URL(`${endpoint.origin}${endpoint.pathname.replace(/\/$/, "")}${path}${query}`)

const encoded = (path: string): string => path.split("/").map(encodeURIComponent).join("/")

/** Explains an answer that the data set, its revision or its file does not exist or is not accessible. */
const explainAt =
  ({ endpoint, site }: Hub, revision: string) =>
  ({ status, headers }: ServerAnswer): string | undefined => {
    const at = shown(endpoint).replace(/\/$/, "")
    if (headers["x-error-code"] === "RevisionNotFound") {
      return `there is no revision "${revision}" at ${at}; expected a branch, a tag or a commit in hf_revision`
    }
    // The hub gives the same answer for a private and for a missing data set, so that nobody learns which names are taken.
    if (status !== 401 && status !== 403 && status !== 404) return undefined
    const remedy =
      site.authorization === null
        ? "check the name, and set HF_TOKEN if the data set is private or asks for consent"
        : "check the name, and that the token in HF_TOKEN may read it"
    return `there is no such data set at ${at} that we may read (${status}); ${remedy}`
  }

/** Converts an error of a request to a `DatasetError`. */
const asDatasetError = (id: string) =>
  Effect.mapError(({ message, reason }: LmError) => ({
    error: new DatasetError({ path: id, message }),
    isUnreachable: reason === "exhausted",
  }))

/** Logs once, after the first failure of a request, what the program is waiting for. */
const sayingWhy = <A, E, R>(request: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    let isSaid = false
    const say = (retry: Retry): Effect.Effect<void> => {
      if (isSaid) return Effect.void
      isSaid = true
      const times = retry.triesLeft === 1 ? "once more" : `up to ${retry.triesLeft} times more`
      return Effect.logWarning(`${retry.error.message.replace(/\.$/, "")}; trying ${times}`)
    }
    return Effect.provideService(request, RetrySink, say)
  })

/**
 * Describes a revision of a data set. The error tells whether the hub could not be reached; then a cached answer may be used.
 * `isPatient: false` tries only once.
 */
export const infoOf = (hub: Hub, id: string, revision: string, isPatient = true) =>
  Effect.gen(function* () {
    const url = urlOf(hub, `/api/datasets/${encoded(id)}/revision/${encodeURIComponent(revision)}`, "?blobs=true")
    const usual = yield* ServerRetries
    const options = {
      mostBytes: mostInfoBytes,
      explain: explainAt(hub, revision),
      retries: isPatient ? usual : { ...usual, maxRetries: 0 },
    }
    return yield* exchange(hub.site, HttpClientRequest.get(url), options, ({ bytes }) =>
      decodeInfo(parsedJson(utf8.decode(bytes))).pipe(
        Effect.mapError((error) =>
          lmError(id, "malformed", `${shown(url)}: cannot read the answer: ${oneLine(error.message)}`, { attempts: 1 }),
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
      ),
    )
  }).pipe(sayingWhy, asDatasetError(id))

/** Downloads a file of a commit. If its size or digest differs from the hub's description, it is downloaded again. */
export const fileOf = (hub: Hub, id: string, sha: string, file: HubFile): Effect.Effect<Uint8Array, DatasetError> => {
  const url = urlOf(hub, `/datasets/${encoded(id)}/resolve/${sha}/${encoded(file.path)}`)
  if ((file.size ?? 0) > mostFileBytes) {
    return Effect.fail(failed(id, `${file.path} has ${file.size} bytes; expected at most ${mostFileBytes}`))
  }
  const damaged = (problem: string) => lmError(id, "malformed", `${shown(url)}: ${problem}`, { attempts: 1 })
  const options = { mostBytes: mostFileBytes, explain: explainAt(hub, sha) }
  return exchange(hub.site, HttpClientRequest.get(url), options, ({ bytes }) =>
    Effect.gen(function* () {
      if (file.size !== null && bytes.length !== file.size) {
        return yield* damaged(`expected ${file.size} bytes, found ${bytes.length}`)
      }
      if (file.sha256 !== null && (yield* sha256(bytes)) !== file.sha256) {
        return yield* damaged("the content does not match its digest")
      }
      return bytes
    }),
  ).pipe(
    sayingWhy,
    asDatasetError(id),
    Effect.mapError(({ error }) => error),
  )
}
