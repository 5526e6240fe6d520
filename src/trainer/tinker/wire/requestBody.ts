/** Reads the bodies of requests: JSON or protobuf, compressed by Zstandard or not, up to a size. */
import { ByteSize, Effect } from "effect"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import { jsonValue } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import type { InProgress } from "../waiting/counting.ts"
import type { Unzstd } from "../../../base/formats/zip/unzip.ts"
import { ApiError, badRequest } from "../../../decoder/serve/ApiError.ts"

export interface RequestBody {
  readonly encoding: "json" | "protobuf"
  readonly bytes: Uint8Array
}

/** The largest number of lists and objects in a JSON body. */
const mostLists = 2 ** 20

const refuse = (status: number, message: string): ApiError => new ApiError({ status, code: null, param: null, message })

const tooLarge = (most: number): ApiError => refuse(413, `expected a body of at most ${most} bytes`)

const encodingOf = ({ headers }: HttpServerRequest.HttpServerRequest): RequestBody["encoding"] | undefined => {
  const type = headers["content-type"] ?? ""
  if (/^application\/x-protobuf\b/i.test(type)) return "protobuf"
  return /^application\/(?:[\w.-]+\+)?json\b/i.test(type) ? "json" : undefined
}

interface BodyOptions {
  /** The name of the API key. */
  readonly owner: string
  /** The largest body in bytes, also after it is decompressed. */
  readonly most: number
  readonly unzstd: Unzstd
  readonly inProgress: InProgress
  /** The most bytes of all bodies of an API key that are read or handled at the same time. */
  readonly mostInProgress: number
}

/**
 * Reads the body of the current request, and handles it. Until then its bytes count for its API key, so that many requests at the
 * same time, or slow ones, do not take all memory.
 */
export const withBody = <A, E, R>(options: BodyOptions, handle: (body: RequestBody) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { owner, most, unzstd, inProgress, mostInProgress } = options
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    const checkRoom = (bytes: number) =>
      Effect.suspend(() =>
        inProgress.of(owner) + bytes > mostInProgress
          ? Effect.fail(refuse(429, `this API key sends ${inProgress.of(owner)} bytes already; try again later`))
          : Effect.void,
      )
    if (Number(headers["content-length"] ?? 0) > most) return yield* tooLarge(most)
    // Without a length, a body may be as large as any.
    const declared = Math.min(Number(headers["content-length"] ?? most) || 0, most)
    yield* checkRoom(declared)
    const read = Effect.gen(function* () {
      const body = yield* readBody(most, unzstd)
      const more = Math.max(0, body.bytes.length - declared)
      yield* checkRoom(more)
      return yield* inProgress.counting(owner, more, handle(body))
    })
    return yield* inProgress.counting(owner, declared, read)
  })

/** Reads the body of the current request. */
const readBody = Effect.fnUntraced(function* (most: number, unzstd: Unzstd) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const { headers } = request
  const encoding = encodingOf(request)
  if (encoding === undefined)
    return yield* refuse(415, "content-type: expected application/json or application/x-protobuf")
  const buffer = yield* request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.fromInputUnsafe(most)),
    Effect.mapError(({ reason }) =>
      reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
        ? tooLarge(most)
        : refuse(400, "the body could not be read"),
    ),
  )
  const sent = new Uint8Array(buffer)
  const compression = headers["content-encoding"] ?? "identity"
  if (compression === "identity") return { encoding, bytes: sent }
  if (compression !== "zstd") return yield* refuse(415, `content-encoding: expected zstd, found "${compression}"`)
  const bytes = yield* Effect.mapError(unzstd(sent, most), () =>
    refuse(413, `content-encoding: expected a body that zstd unpacks to at most ${most} bytes`),
  )
  const body: RequestBody = { encoding, bytes }
  return body
})

/** Parses a body that must be JSON. */
export const jsonIn = ({ encoding, bytes }: RequestBody): Effect.Effect<unknown, ApiError> =>
  encoding === "protobuf"
    ? Effect.fail(refuse(415, "content-type: expected application/json for this request"))
    : Effect.try({
        try: (): unknown => jsonValue(utf8.decode(bytes), mostLists),
        catch: (error) =>
          badRequest(error instanceof RangeError ? `the body: ${error.message}` : "the body is not valid JSON"),
      })
