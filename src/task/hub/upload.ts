/**
 * Uploads files to a model repository of the Hugging Face hub, or of a server that speaks its HTTP API: makes the repository,
 * asks which files are large, stores those by the protocol of git-lfs, and commits all files at once.
 */
import { Effect, Schema } from "effect"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClient from "effect/http/HttpClient"
import * as UrlParams from "effect/http/UrlParams"
import { sha256 } from "../../config/sha256.ts"
import { innermostCause, oneLine, parsedJson, shortened } from "../../config/text.ts"
import { utf8 } from "../../config/utf8.ts"
import { withoutKey } from "../../lm/providers/keys.ts"
import { type Hub, openHub } from "./client.ts"

/** The error of a hub that cannot be reached or refuses an upload. The message is one line for people. */
export class UploadError extends Schema.TaggedError<UploadError>()("UploadError", { message: Schema.String }) {}

export interface Upload {
  /** The repository: the name of a user or an organization, a slash, and a name. */
  readonly id: string
  /** Whether a new repository is private. One that there is already stays as it is. */
  readonly isPrivate: boolean
  /** The first line of the commit's message. */
  readonly summary: string
  readonly files: Readonly<Record<string, Uint8Array>>
}

const Modes = Schema.Struct({
  files: Schema.Array(Schema.Struct({ path: Schema.String, uploadMode: Schema.Literals(["lfs", "regular"]) })),
})
const Action = Schema.Struct({
  href: Schema.String,
  header: Schema.optional(Schema.NullOr(Schema.Record(Schema.String, Schema.String))),
})
const Batch = Schema.Struct({
  objects: Schema.Array(
    Schema.Struct({
      oid: Schema.String,
      error: Schema.optional(Schema.NullOr(Schema.Struct({ message: Schema.String }))),
      actions: Schema.optional(
        Schema.NullOr(Schema.Struct({ upload: Schema.optional(Action), verify: Schema.optional(Action) })),
      ),
    }),
  ),
})
const Committed = Schema.Struct({ commitUrl: Schema.optional(Schema.String) })

const toBase64 = Schema.encodeSync(Schema.Uint8ArrayFromBase64)

const lfsType = "application/vnd.git-lfs+json"

/** Sends a request, with the token only to the hub's own host, and returns the answer's text if its status is right. */
const send = Effect.fnUntraced(function* (
  hub: Hub,
  request: HttpClientRequest.HttpClientRequest,
  allowed: ReadonlyArray<number> = [200, 201, 204],
) {
  const url = URL.parse(request.url)
  const at = `${url?.origin}${url?.pathname}`
  const isOwn = hub.token !== null && url?.origin === hub.endpoint.origin
  const failing = Effect.mapError(
    (error: { readonly reason: { readonly _tag: string; readonly cause?: unknown } }) =>
      new UploadError({
        message: `${at} cannot be reached: ${innermostCause(error.reason.cause) || error.reason._tag}`,
      }),
  )
  const response = yield* hub.client
    .execute(isOwn ? HttpClientRequest.bearerToken(request, hub.token.secret) : request)
    .pipe(
      Effect.provideService(UrlParams.CurrentRedactedNames, [/^/]),
      Effect.provideService(HttpClient.TracerPropagationEnabled, false),
      failing,
    )
  const text = yield* failing(response.text)
  if (allowed.includes(response.status)) return text
  const { error }: { readonly error?: unknown } = Object(parsedJson(text))
  const problem = shortened(oneLine(typeof error === "string" ? error : text.replace(/<[^>]*>/g, " ")).trim(), 300)
  const hint =
    response.status === 401 || response.status === 403 ? "; check that the token in HF_TOKEN may write there" : ""
  const message = `${at} answered ${response.status}${problem === "" ? "" : `: ${problem}`}${hint}`
  return yield* new UploadError({ message: withoutKey(message, hub.token) })
})

const decoded = <S extends Schema.Codec<unknown, unknown>>(schema: S, what: string, text: string) =>
  Effect.mapError(
    Schema.decodeUnknownEffect(schema)(parsedJson(text)),
    (error) => new UploadError({ message: `${what}: cannot read the hub's answer: ${oneLine(error.message)}` }),
  )

/** Fails if a name cannot be that of a repository. */
export const checkId = (id: string): Effect.Effect<void, UploadError> =>
  /^[\w.-]+\/[\w.-]+$/.test(id) && !/(?:^|\/)\.+(?:\/|$)/.test(id)
    ? Effect.void
    : Effect.fail(new UploadError({ message: `expected a repository such as ada/ppo-CartPole-v1, found "${id}"` }))

/**
 * Uploads files to a model repository, which is made if there is none, and returns the address of its page. The hub and the
 * token are in `HF_ENDPOINT` and `HF_TOKEN`. Files that the repository has besides stay there.
 *
 * @example
 * ```ts
 * const files = { "README.md": new TextEncoder().encode("# A policy") }
 * const page = uploadModel({ id: "ada/ppo-CartPole-v1", isPrivate: true, summary: "Add a policy", files })
 * ```
 */
export const uploadModel = Effect.fnUntraced(function* ({ id, isPrivate, summary, files }: Upload) {
  yield* checkId(id)
  const [organization, name] = id.split("/")
  const hub = yield* Effect.mapError(openHub(id), ({ message }) => new UploadError({ message }))
  if (hub.token === null) {
    return yield* new UploadError({ message: `${id}: set HF_TOKEN to a token that may write to this repository` })
  }
  const root = `${hub.endpoint.origin}${hub.endpoint.pathname.replace(/\/$/, "")}`
  const post = (path: string, body: unknown) => HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post(path), body)

  // 409 says that there is such a repository already.
  const created = post(`${root}/api/repos/create`, { name, organization, type: "model", private: isPrivate })
  yield* send(hub, created, [200, 201, 409])

  const entries = yield* Effect.forEach(Object.entries(files), ([path, bytes]) =>
    Effect.map(sha256(bytes), (oid) => ({ path, bytes, oid })),
  )
  const question = {
    files: entries.map(({ path, bytes, oid }) => ({
      path,
      sample: toBase64(bytes.subarray(0, 512)),
      size: bytes.length,
      sha: oid,
    })),
  }
  const modes = yield* decoded(Modes, id, yield* send(hub, post(`${root}/api/models/${id}/preupload/main`, question)))
  const large = new Set(modes.files.filter(({ uploadMode }) => uploadMode === "lfs").map(({ path }) => path))
  const isLarge = ({ path, bytes }: { readonly path: string; readonly bytes: Uint8Array }): boolean =>
    large.has(path) && bytes.length > 0

  yield* storeLarge(hub, `${root}/${id}.git/info/lfs/objects/batch`, entries.filter(isLarge))
  const operations = entries.map((entry) =>
    isLarge(entry)
      ? { key: "lfsFile", value: { path: entry.path, algo: "sha256", oid: entry.oid, size: entry.bytes.length } }
      : { key: "file", value: { content: toBase64(entry.bytes), path: entry.path, encoding: "base64" } },
  )
  const lines = [{ key: "header", value: { summary, description: "" } }, ...operations].map((line) =>
    JSON.stringify(line),
  )
  const commit = HttpClientRequest.bodyUint8Array(
    HttpClientRequest.post(`${root}/api/models/${id}/commit/main`),
    utf8.encode(`${lines.join("\n")}\n`),
    "application/x-ndjson",
  )
  yield* decoded(Committed, id, yield* send(hub, commit))
  return `${root}/${id}`
})

interface Entry {
  readonly bytes: Uint8Array
  readonly oid: string
}

/** Stores large files where the hub says. It asks for no upload of a file that it has already. */
const storeLarge = Effect.fnUntraced(function* (hub: Hub, address: string, entries: ReadonlyArray<Entry>) {
  if (entries.length === 0) return
  const body = {
    operation: "upload",
    transfers: ["basic"],
    hash_algo: "sha256",
    objects: entries.map(({ oid, bytes }) => ({ oid, size: bytes.length })),
  }
  const asked = HttpClientRequest.bodyUint8Array(
    HttpClientRequest.post(address),
    utf8.encode(JSON.stringify(body)),
    lfsType,
  )
  const text = yield* send(hub, HttpClientRequest.setHeader(asked, "accept", lfsType))
  const { objects } = yield* decoded(Batch, address, text)
  for (const { oid, error, actions } of objects) {
    const entry = entries.find((one) => one.oid === oid)
    if (error !== undefined && error !== null) {
      return yield* new UploadError({ message: `${address}: ${oneLine(error.message)}` })
    }
    if (entry === undefined || actions?.upload === undefined) continue
    const { upload, verify } = actions
    const put = HttpClientRequest.bodyUint8Array(HttpClientRequest.put(upload.href), entry.bytes)
    yield* send(hub, HttpClientRequest.setHeaders(put, upload.header ?? {}))
    if (verify === undefined) continue
    const verified = HttpClientRequest.bodyUint8Array(
      HttpClientRequest.post(verify.href),
      utf8.encode(JSON.stringify({ oid, size: entry.bytes.length })),
      lfsType,
    )
    yield* send(hub, HttpClientRequest.setHeaders(verified, verify.header ?? {}))
  }
})
