/**
 * Signs requests to S3 by AWS Signature Version 4: the header `authorization` proves that the sender knows the secret key.
 * These are pure functions.
 *
 * We do not use the library `aws4fetch`, because it needs `crypto.subtle`, which pages without HTTPS lack, and signs only
 * `Request` objects, while our requests are sent by Effect's `HttpClient`, with its retries, limits and errors.
 *
 * See "Authenticating Requests: Using the Authorization Header" in the API reference of Amazon S3.
 */
import { hmac } from "@noble/hashes/hmac.js"
import { sha256 } from "@noble/hashes/sha2.js"
import { bytesToHex } from "@noble/hashes/utils.js"
import { utf8 } from "../../../base/text/utf8.ts"

/** A pair of keys, with a token if they are valid only for some time. */
interface Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
}

/** A request to sign. `path` is already encoded, `query` is not. */
export interface Unsigned {
  readonly method: string
  readonly host: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** Other headers to sign, with names in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  readonly region: string
  /** The current time in milliseconds. A server refuses a request that was signed more than 15 minutes ago. */
  readonly millis: number
}

const percent = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

/** Encodes all characters except letters, digits and `-._~`. */
const encoded = (text: string): string => encodeURIComponent(text).replace(/[!'()*]/g, percent)

/** Encodes the names in a path, and leaves the `/` between them. */
export const encodedPath = (path: string): string => path.split("/").map(encoded).join("/")

/** Returns the query string sorted by name, as the signature needs it. */
export const sortedQuery = (query: Readonly<Record<string, string>>): string =>
  Object.entries(query)
    .map(([name, value]) => [encoded(name), encoded(value)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join("&")

const hashed = (text: string): string => bytesToHex(sha256(utf8.encode(text)))
const keyed = (key: Uint8Array, text: string): Uint8Array => hmac(sha256, key, utf8.encode(text))

/**
 * Returns the headers of the signed request, which are the headers of `request` and those of the signature. The HTTP client
 * itself adds `host`.
 */
export const signed = (request: Unsigned, credentials: Credentials): Readonly<Record<string, string>> => {
  const time = new Date(request.millis).toISOString().replace(/[-:]|\.\d+/g, "")
  const day = time.slice(0, 8)
  const { sessionToken } = credentials
  const headers: Record<string, string> = {
    ...request.headers,
    "x-amz-content-sha256": bytesToHex(sha256(request.body)),
    "x-amz-date": time,
    ...(sessionToken === undefined ? {} : { "x-amz-security-token": sessionToken }),
  }
  const all = Object.entries({ ...headers, host: request.host }).sort(([a], [b]) => (a < b ? -1 : 1))
  const names = all.map(([name]) => name).join(";")
  const canonical = [
    request.method,
    request.path,
    sortedQuery(request.query),
    ...all.map(([name, value]) => `${name}:${value.trim()}`),
    "",
    names,
    headers["x-amz-content-sha256"],
  ].join("\n")
  const scope = `${day}/${request.region}/s3/aws4_request`
  const secret = utf8.encode(`AWS4${credentials.secretAccessKey}`)
  const key = [day, request.region, "s3", "aws4_request"].reduce(keyed, secret)
  const signature = bytesToHex(keyed(key, ["AWS4-HMAC-SHA256", time, scope, hashed(canonical)].join("\n")))
  const credential = `${credentials.accessKeyId}/${scope}`
  return {
    ...headers,
    authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${names}, Signature=${signature}`,
  }
}
