/**
 * Provides an object store in a bucket of Amazon S3, or of a server with the same protocol, such as MinIO or Garage.
 *
 * @example
 * ```ts
 * import { Redacted } from "effect"
 * import * as FetchHttpClient from "effect/http/FetchHttpClient"
 *
 * const bucket = S3.layer({
 *   bucket: "my-runs",
 *   accessKeyId: "AKIAIOSFODNN7EXAMPLE",
 *   secretAccessKey: Redacted.make("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
 *   endpoint: "http://127.0.0.1:9000",
 * })
 * const stored = RunStore.layerObjects().pipe(Layer.provide(bucket), Layer.provide(FetchHttpClient.layer))
 * ```
 */
import { Clock, Effect, Layer, Redacted, Schedule, Stream } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import { RunStoreError } from "../RunStoreError.ts"
import { innermostCause, oneLine } from "../../../base/text/text.ts"
import { joined } from "../../../base/text/bytes.ts"
import { mostBytes } from "../../../base/files/files.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import type { Part } from "../FileTree.ts"
import { type ObjectInfo, ObjectStore } from "./ObjectStore.ts"
import { encodedPath, signed, sortedQuery } from "./signature.ts"

/** A bucket, and the key with which to access it. */
export interface S3Options {
  readonly bucket: string
  readonly accessKeyId: string
  readonly secretAccessKey: Redacted.Redacted
  /** The token that belongs to temporary keys. */
  readonly sessionToken?: string
  /** The address of the server; Amazon's in the region if left out. */
  readonly endpoint?: string
  /** The region of the bucket; `us-east-1` if left out, which servers other than Amazon's usually expect. */
  readonly region?: string
  /** The prefix of all keys in the bucket, such as `team/`. Callers use keys without it. */
  readonly prefix?: string
}

/** The reason for a failed attempt. `isTemporary` tells whether the same request may succeed later. */
interface Refusal {
  /** The code of the server's answer; empty if it gave none. */
  readonly code: string
  readonly message: string
  readonly isTemporary: boolean
}

/** Returns the contents of all elements with this name. In the server's XML, they have no attributes, comments or CDATA. */
const elements = (xml: string, name: string): ReadonlyArray<string> =>
  [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, "g"))].map(([, content = ""]) => unescaped(content))

/** Returns the text of an ETag without quotes. Some servers send none. */
const versionOf = (etag = ""): string => etag.replace(/^W\//, "").replaceAll('"', "")

/** Parses a time in the format of HTTP or XML. */
const timeIn = (text = ""): number | undefined => {
  const millis = Date.parse(text)
  return Number.isNaN(millis) ? undefined : millis
}

const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" }

const unescaped = (text: string): string =>
  text.replace(/&(?:#x([\da-f]+)|#(\d+)|(\w+));/gi, (whole, hex?: string, decimal?: string, name?: string) => {
    if (name !== undefined) return entities[name] ?? whole
    const code = Number.parseInt(hex ?? decimal ?? "", hex === undefined ? 10 : 16)
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })

const temporaryCodes = [
  "ConditionalRequestConflict",
  "InternalError",
  "OperationAborted",
  "RequestTimeout",
  "ServiceUnavailable",
  "SlowDown",
]
const fullCodes = ["EntityTooLarge", "InsufficientStorage", "QuotaExceeded", "XMinioStorageFull"]
const regionCodes = ["AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"]

/** Returns what the user can do about an error of the server. */
const remedyFor = (code: string, status: number, { bucket, accessKeyId, region }: Required<S3Options>): string => {
  if (code === "NoSuchBucket") return `create the bucket ${bucket}, or name another one`
  if (["InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken"].includes(code)) {
    return `check the key ${accessKeyId} and its secret (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)`
  }
  if (code === "RequestTimeTooSkewed") return "set this machine's clock"
  if (regionCodes.includes(code)) return `set the region of the bucket, ${region} is not it (AWS_REGION)`
  if (fullCodes.includes(code) || status === 507) return `the store is full: make room in the bucket ${bucket}`
  if (status === 401 || status === 403)
    return `the key ${accessKeyId} needs the right to read, write and list ${bucket}`
  return ""
}

const rangeOf = ({ offset, bytes }: Part): string => `bytes=${offset}-${offset + bytes - 1}`

/** The body of a response, and those of its headers that are needed. */
interface Answer {
  readonly body: Uint8Array
  readonly etag: string | undefined
  /** The server's time when it answered, in milliseconds. */
  readonly now: number
  /** The time at which the object was written; the time of the response if the server does not send it. */
  readonly modified: number
}

/** The time limit for a request and its whole response. */
const patience = "5 minutes"

/** The largest page of a listing in bytes. A page has at most 1000 keys of at most 1024 bytes each. */
const mostListBytes = 16 * 2 ** 20
/** The number of bytes of an error's body that are read. */
const refusalBytes = 64 * 1024
/** The largest number of pages of a listing. */
const mostPages = 10_000

/** Reads the body of a response; undefined once it is longer than `most` bytes. For `isCut`, the rest is left out instead. */
const bodyAtMost = (
  response: HttpClientResponse.HttpClientResponse,
  most: number,
  { isCut }: { readonly isCut: boolean },
) =>
  Effect.suspend(() => {
    const chunks: Array<Uint8Array> = []
    let read = 0
    return response.stream.pipe(
      Stream.takeUntil((chunk) => {
        chunks.push(chunk)
        read += chunk.length
        return read > most
      }),
      Stream.runDrain,
      // For a client in the style of browsers, it is an error that a response has no body at all.
      Effect.catchIf(
        ({ reason }) => reason._tag === "EmptyBodyError",
        () => Effect.void,
      ),
      Effect.map(() => {
        if (read <= most) return joined(chunks)
        return isCut ? joined(chunks).subarray(0, most) : undefined
      }),
    )
  })

/** The pauses between attempts: 0.2, 0.4, 0.8, 1.6 and 3.2 seconds. */
const attempts = Schedule.exponential("200 millis").pipe(Schedule.upTo({ times: 5 }))

/** A bucket, with all that a request to it needs. */
interface Bucket {
  readonly client: HttpClient.HttpClient
  /** The address of the server. */
  readonly base: URL
  readonly options: Required<S3Options>
  readonly credentials: Parameters<typeof signed>[1]
  /** The path of the bucket on the server. */
  readonly root: string
}

const openBucket = Effect.fnUntraced(function* (typed: S3Options) {
  const client = yield* HttpClient.HttpClient
  const region = typed.region ?? "us-east-1"
  const endpoint = typed.endpoint ?? `https://s3.${region}.amazonaws.com`
  const options = { sessionToken: "", prefix: "", ...typed, region, endpoint }
  const base = yield* Effect.try({
    try: () => new URL(endpoint),
    catch: () =>
      new RunStoreError({
        path: "",
        message: `expected the address of a server, such as https://host:9000, found ${endpoint}`,
      }),
  })
  const credentials = {
    accessKeyId: options.accessKeyId,
    secretAccessKey: Redacted.value(options.secretAccessKey),
    sessionToken: typed.sessionToken,
  }
  const bucket: Bucket = {
    client,
    base,
    options,
    credentials,
    root: `${base.pathname.replace(/\/$/, "")}/${options.bucket}`,
  }
  return bucket
})

interface Question {
  readonly method: "GET" | "PUT" | "DELETE"
  readonly query?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  readonly conditions?: Readonly<Record<string, string>>
  /** The largest body of an answer in bytes. */
  readonly most?: number
}

const noBody = new Uint8Array(0)

/** Sends a request once. */
const once = Effect.fnUntraced(function* (
  { client, base, options, credentials }: Bucket,
  path: string,
  { method, query = {}, body = noBody, conditions = {}, most = mostListBytes }: Question,
): Effect.fn.Return<Answer, Refusal> {
  const millis = yield* Clock.currentTimeMillis
  const unsigned = { method, host: base.host, path, query, body, headers: conditions, region: options.region, millis }
  const headers = signed(unsigned, credentials)
  const search = sortedQuery(query)
  const request = HttpClientRequest.make(method)(`${base.origin}${path}${search === "" ? "" : `?${search}`}`).pipe(
    HttpClientRequest.setHeaders(headers),
    method === "PUT" ? HttpClientRequest.bodyUint8Array(body) : (same) => same,
  )
  const response = yield* client.execute(request).pipe(
    Effect.provideService(HttpClient.TracerPropagationEnabled, false),
    Effect.flatMap((response) => {
      const isCut = response.status < 200 || response.status >= 300
      return Effect.map(bodyAtMost(response, isCut ? refusalBytes : most, { isCut }), (body) => ({ response, body }))
    }),
    Effect.timeout(patience),
    Effect.mapError((error): Refusal => {
      const cause = oneLine(error._tag === "TimeoutError" ? `in ${patience}` : innermostCause(error.reason.cause))
      const problem = `gives no answer${cause === "" ? "" : ` (${cause})`}`
      return { code: "", message: `${base.origin} ${problem}; is the server running?`, isTemporary: true }
    }),
  )
  const { status, headers: answered } = response.response
  if (response.body === undefined) {
    const message = `${base.origin} sends more than ${most} bytes, which is more than was asked for`
    return yield* Effect.fail({ code: "", message, isTemporary: false })
  }
  if (status >= 200 && status < 300) {
    const now = timeIn(answered["date"]) ?? millis
    const modified = timeIn(answered["last-modified"]) ?? now
    return { body: response.body, etag: answered["etag"], now, modified }
  }
  const xml = utf8.decode(response.body)
  const [code = ""] = elements(xml, "Code")
  const [problem = ""] = elements(xml, "Message")
  const remedy = remedyFor(code, status, options)
  const problemAt = `${base.origin} answered ${[status, code].filter((part) => part !== "").join(" ")}`
  const message = [problemAt, problem.replace(/\.$/, "")].filter((part) => part !== "").join(": ")
  const isTemporary = temporaryCodes.includes(code) || status === 429 || (status >= 500 && remedy === "")
  return yield* Effect.fail({
    code,
    message: oneLine(remedy === "" ? message : `${message}; ${remedy}`),
    isTemporary,
  })
})

/** Sends a request, and repeats it while its failure is temporary. */
const send = (bucket: Bucket, key: string, question: Question) => {
  const path = `${encodedPath(bucket.root)}${key === "" ? "" : `/${encodedPath(bucket.options.prefix + key)}`}`
  return once(bucket, path, question).pipe(
    Effect.retry({ schedule: attempts, while: ({ isTemporary }) => isTemporary }),
  )
}

const failing = (key: string) => Effect.mapError(({ message }: Refusal) => new RunStoreError({ path: key, message }))

const get = (bucket: Bucket, key: string, part?: Part) =>
  send(bucket, key, {
    method: "GET",
    most: part?.bytes ?? mostBytes.binary,
    ...(part !== undefined && { conditions: { range: rangeOf(part) } }),
  }).pipe(
    Effect.map(({ body, etag, now, modified }) => ({
      key,
      bytes: body,
      version: versionOf(etag),
      age: now - modified,
    })),
    Effect.catchIf(
      ({ code }) => code === "NoSuchKey" || code === "InvalidRange",
      () => Effect.undefined,
    ),
    failing(key),
  )

/** Returns the text that a server has percent-encoded; undefined if it is not. */
const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.replaceAll("+", " "))
  } catch {
    return undefined
  }
}

/** Reads the objects of one page of a listing; undefined if one of them cannot be read. */
const objectsIn = (xml: string, keyPrefix: string, now: number): ReadonlyArray<ObjectInfo> | undefined => {
  // Some servers do not encode the keys although we ask for it; the response shows whether they did.
  const isEncoded = elements(xml, "EncodingType")[0] === "url"
  const objects: Array<ObjectInfo> = []
  for (const part of xml.split("<Contents>").slice(1)) {
    const end = part.indexOf("</Contents>")
    const contents = part.slice(0, Math.max(0, end))
    const [written = ""] = elements(contents, "Key")
    const key = isEncoded ? decoded(written) : written
    const bytes = Number(elements(contents, "Size")[0] ?? 0)
    if (end < 0 || key === undefined || !Number.isSafeInteger(bytes) || bytes < 0) return undefined
    objects.push({
      key: key.slice(keyPrefix.length),
      bytes,
      version: versionOf(elements(contents, "ETag")[0]),
      age: now - (timeIn(elements(contents, "LastModified")[0]) ?? now),
    })
  }
  return objects
}

const list = Effect.fnUntraced(function* (bucket: Bucket, prefix: string) {
  const objects: Array<ObjectInfo> = []
  const failed = (problem: string) =>
    new RunStoreError({
      path: prefix,
      message: `${bucket.base.origin} ${problem}; use a server that has ListObjectsV2`,
    })
  const tokens = new Set<string>()
  let next: string | undefined
  do {
    const query = {
      "list-type": "2",
      "encoding-type": "url",
      prefix: bucket.options.prefix + prefix,
      ...(next === undefined ? {} : { "continuation-token": next }),
    }
    const { body, now } = yield* failing(prefix)(send(bucket, "", { method: "GET", query }))
    const xml = utf8.decode(body)
    const page = objectsIn(xml, bucket.options.prefix, now)
    if (page === undefined) return yield* failed("sends a list of keys that cannot be read")
    for (const object of page) objects.push(object)
    const isLast = elements(xml, "IsTruncated")[0] !== "true"
    next = isLast ? undefined : elements(xml, "NextContinuationToken")[0]
    if (!isLast && next === undefined) return yield* failed("lists only some of the keys")
    if (next !== undefined && tokens.has(next)) return yield* failed("lists the same keys again and again")
    if (next !== undefined) tokens.add(next)
    if (tokens.size >= mostPages) return yield* failed(`lists the keys in more than ${mostPages} pages`)
  } while (next !== undefined)
  return objects
})

/**
 * Replaces an object if its version is `expected`; if `expected` is undefined, writes the object only if it does not exist.
 */
const putIf = (bucket: Bucket, key: string, bytes: Uint8Array, expected: string | undefined) => {
  const condition: Readonly<Record<string, string>> =
    expected === undefined ? { "if-none-match": "*" } : { "if-match": `"${expected}"` }
  const question = { method: "PUT", body: bytes.slice() } as const
  return send(bucket, key, { ...question, conditions: condition }).pipe(
    Effect.catchIf(
      ({ code }) => code === "NotImplemented",
      // A server without conditions refuses or ignores them, so send the put without one; `lease.ts` detects such servers.
      () => send(bucket, key, question),
    ),
    Effect.map(({ etag }): string | undefined => versionOf(etag)),
    Effect.catchIf(
      ({ code }) => code === "PreconditionFailed" || code === "NoSuchKey",
      () => Effect.undefined,
    ),
    failing(key),
  )
}

const make = Effect.fnUntraced(function* (options: S3Options) {
  const bucket = yield* openBucket(options)
  return ObjectStore.of({
    get: (key) => Effect.map(get(bucket, key), (object) => object?.bytes),
    put: (key, bytes) => Effect.asVoid(failing(key)(send(bucket, key, { method: "PUT", body: bytes.slice() }))),
    list: (prefix) => Effect.map(list(bucket, prefix), (objects) => objects.map(({ key }) => key)),
    versions: {
      list: (prefix) => list(bucket, prefix),
      get: (key, part) => get(bucket, key, part),
      put: (key, bytes, expected) => putIf(bucket, key, bytes, expected),
    },
    remove: (key) =>
      send(bucket, key, { method: "DELETE" }).pipe(
        Effect.catchIf(
          ({ code }) => code === "NoSuchKey",
          () => Effect.void,
        ),
        Effect.asVoid,
        failing(key),
      ),
  })
})

/**
 * Makes the Layer that keeps objects in a bucket of S3. Its error messages say what to do; temporary failures are retried.
 */
export const layer = (options: S3Options): Layer.Layer<ObjectStore, RunStoreError, HttpClient.HttpClient> =>
  Layer.effect(ObjectStore, make(options))
