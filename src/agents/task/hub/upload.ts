/**
 * Uploads files to a model repository on the Hugging Face hub, or on a server with the same HTTP API. It creates the
 * repository, asks which files are large, stores those with the protocol of git-lfs, and commits all files at once.
 */
import { Effect, Redacted, Schema } from "effect"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import { sha256 } from "../../../base/text/sha256.ts"
import { oneLine, parsedJson } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import {
  exchange,
  type ExchangeOptions,
  firstRetries,
  quoted,
  refusalOf,
  type Site,
  withoutName,
} from "../../lm/exchange.ts"
import { DatasetError } from "../TaskSet.ts"
import { openHub } from "./client.ts"

const failed = (path: string, message: string): DatasetError => new DatasetError({ path, message })

interface Upload {
  /** The name of the repository: a user or an organization, a slash, and a name. */
  readonly id: string
  /**
   * Whether a new repository is private. If it is true and the repository already exists as a public one, the upload is
   * refused.
   */
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
const Repository = Schema.Struct({ private: Schema.optional(Schema.Boolean) })
const Committed = Schema.Struct({ commitUrl: Schema.optional(Schema.String) })

const toBase64 = Schema.encodeSync(Schema.Uint8ArrayFromBase64)

const lfsType = "application/vnd.git-lfs+json"

/** Sends a request. It may be sent twice, unless it is the commit. */
const send = (site: Site, request: HttpClientRequest.HttpClientRequest, options: ExchangeOptions = {}) =>
  exchange(site, request, { isRepeatable: true, ...options }, Effect.succeed).pipe(
    Effect.mapError((error) => {
      const hint = error.reason === "exhausted" ? "; check the network and HF_ENDPOINT, or try again later" : ""
      return failed(site.name, `${withoutName(site, error)}${hint}`)
    }),
  )

const textOf = Effect.map(({ bytes }: { readonly bytes: Uint8Array }) => utf8.decode(bytes))

const decoded = <S extends Schema.Codec<unknown, unknown>>(schema: S, what: string, text: string) =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(parsedJson(text)), (error) =>
    failed(what, `${what}: cannot read the hub's answer: ${oneLine(error.message)}`),
  )

/** Fails if a name is not valid for a repository. */
export const checkId = (id: string): Effect.Effect<void, DatasetError> =>
  /^[\w.-]+\/[\w.-]+$/.test(id) && !/(?:^|\/)\.+(?:\/|$)/.test(id)
    ? Effect.void
    : Effect.fail(failed(id, `expected a repository such as ada/ppo-CartPole-v1, found "${id}"`))

/**
 * Uploads files to a model repository, which is created if it does not exist, and returns the address of its page. The hub
 * and the token come from `HF_ENDPOINT` and `HF_TOKEN`. Other files in the repository are kept.
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
  const { site, endpoint } = yield* openHub(id)
  if (site.authorization === null) {
    return yield* failed(id, `${id}: set HF_TOKEN to a token that may write to this repository`)
  }
  const root = `${endpoint.origin}${endpoint.pathname.replace(/\/$/, "")}`
  const post = (path: string, body: unknown) => HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post(path), body)

  // 409 means that the repository already exists. A token that may not create repositories may still write to existing ones.
  const question = post(`${root}/api/repos/create`, { name, organization, type: "model", private: isPrivate })
  const created = yield* send(site, question, { accepted: [409, 403], retries: yield* firstRetries })
  if (created.status === 409 || created.status === 403) {
    const found = yield* send(site, HttpClientRequest.get(`${root}/api/models/${id}`), { accepted: [401, 403, 404] })
    if (found.status >= 400) {
      const refused = created.status === 403 ? created : found
      return yield* failed(id, withoutName(site, refusalOf(site, refused)))
    }
    const about = yield* decoded(Repository, id, utf8.decode(found.bytes))
    if (isPrivate && about.private !== true) {
      return yield* failed(
        id,
        `${id} is public already; make it private at ${root}/${id}/settings, or leave out --private`,
      )
    }
  }

  const entries = yield* Effect.forEach(Object.entries(files), ([path, bytes]) =>
    Effect.map(sha256(bytes), (oid) => ({ path, bytes, oid })),
  )
  const described = {
    files: entries.map(({ path, bytes, oid }) => ({
      path,
      sample: toBase64(bytes.subarray(0, 512)),
      size: bytes.length,
      sha: oid,
    })),
  }
  const modes = yield* decoded(
    Modes,
    id,
    yield* textOf(send(site, post(`${root}/api/models/${id}/preupload/main`, described))),
  )
  const large = new Set(modes.files.filter(({ uploadMode }) => uploadMode === "lfs").map(({ path }) => path))
  const isLarge = ({ path, bytes }: { readonly path: string; readonly bytes: Uint8Array }): boolean =>
    large.has(path) && bytes.length > 0

  yield* storeLarge(site, `${root}/${id}.git/info/lfs/objects/batch`, entries.filter(isLarge))
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
  yield* decoded(Committed, id, yield* textOf(send(site, commit, { isRepeatable: false })))
  return `${root}/${id}`
})

interface Entry {
  readonly bytes: Uint8Array
  readonly oid: string
}

/** Sends a request with the headers that the hub requires. They may be secrets, such as another authorization. */
const sendAs = (site: Site, request: HttpClientRequest.HttpClientRequest, { header }: typeof Action.Type) => {
  const headers = header ?? {}
  const own = Object.entries(headers).flatMap(([name, value]) =>
    /authorization|token|signature|key/i.test(name) ? [value, ...value.split(" ").slice(1)] : [],
  )
  const secrets = [...site.secrets, ...own.map((value) => Redacted.make(value))]
  return send({ ...site, secrets }, HttpClientRequest.setHeaders(request, headers))
}

/** Stores large files at the addresses that the hub returns. It returns none for a file that it already has. */
const storeLarge = Effect.fnUntraced(function* (site: Site, address: string, entries: ReadonlyArray<Entry>) {
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
  const text = yield* textOf(send(site, HttpClientRequest.setHeader(asked, "accept", lfsType)))
  const { objects } = yield* decoded(Batch, address, text)
  for (const { oid, error, actions } of objects) {
    const entry = entries.find((one) => one.oid === oid)
    if (error !== undefined && error !== null) {
      return yield* failed(address, `${address}: ${quoted(site, error.message)}`)
    }
    if (entry === undefined || actions?.upload === undefined) continue
    const { upload, verify } = actions
    const put = HttpClientRequest.bodyUint8Array(HttpClientRequest.put(upload.href), entry.bytes)
    yield* sendAs(site, put, upload)
    if (verify === undefined) continue
    const verified = HttpClientRequest.bodyUint8Array(
      HttpClientRequest.post(verify.href),
      utf8.encode(JSON.stringify({ oid, size: entry.bytes.length })),
      lfsType,
    )
    yield* sendAs(site, verified, verify)
  }
})
