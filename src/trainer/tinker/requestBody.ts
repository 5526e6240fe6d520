/** Reads the bodies of requests: JSON or protobuf, compressed by Zstandard or not, up to a size. */
import { ByteSize, Effect } from "effect"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import { jsonValue } from "../../base/config/text.ts"
import { utf8 } from "../../base/config/utf8.ts"
import type { Unzstd } from "../../base/formats/zip/unzip.ts"
import { ApiError, badRequest } from "../../decoder/serve/ApiError.ts"

export interface RequestBody {
  readonly encoding: "json" | "protobuf"
  readonly bytes: Uint8Array
}

/** The largest number of lists and objects in a JSON body. */
const mostLists = 2 ** 20

const refuse = (status: number, message: string): ApiError => new ApiError({ status, code: null, param: null, message })

const encodingOf = ({ headers }: HttpServerRequest.HttpServerRequest): RequestBody["encoding"] | undefined => {
  const type = headers["content-type"] ?? ""
  if (/^application\/x-protobuf\b/i.test(type)) return "protobuf"
  return /^application\/(?:[\w.-]+\+)?json\b/i.test(type) ? "json" : undefined
}

/** Reads the body of the current request. */
export const readBody = Effect.fnUntraced(function* (most: number, unzstd: Unzstd) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const { headers } = request
  const encoding = encodingOf(request)
  if (encoding === undefined)
    return yield* refuse(415, "content-type: expected application/json or application/x-protobuf")
  const tooLarge = refuse(413, `expected a body of at most ${most} bytes`)
  if (Number(headers["content-length"] ?? 0) > most) return yield* tooLarge
  const buffer = yield* request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.fromInputUnsafe(most)),
    Effect.mapError(({ reason }) =>
      reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
        ? tooLarge
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
