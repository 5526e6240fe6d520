/** Reads the bodies of requests to local servers that speak a model's protocol. The gateway, `effect serve` and `effect ui` use it. */
import { ByteSize, Effect } from "effect"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import { jsonValue } from "../../base/text/text.ts"

/** Makes the error of a body that cannot be read, from a status and a message for the client. */
type Refusal<E> = (status: 400 | 413 | 415, message: string) => E

/** The largest number of lists and objects in a body. Each takes far more memory than the two characters that it needs. */
const mostLists = 2 ** 20

/**
 * Fails if the content type of a request is not JSON. Pages of other origins cannot send this content type without a preflight
 * request, which the server never allows.
 */
export const expectJson = <E>(
  { headers }: HttpServerRequest.HttpServerRequest,
  refusal: Refusal<E>,
): Effect.Effect<void, E> =>
  /^application\/(?:[\w.-]+\+)?json\b/i.test(headers["content-type"] ?? "")
    ? Effect.void
    : Effect.fail(refusal(415, "expected JSON; send the header content-type: application/json"))

/** Reads the text of the current request's body. Its content type must be JSON. */
const bodyText = Effect.fnUntraced(function* <E>(maxBodyBytes: number, refusal: Refusal<E>) {
  const request = yield* HttpServerRequest.HttpServerRequest
  yield* expectJson(request, refusal)
  const tooLarge = () => refusal(413, `expected a body of at most ${maxBodyBytes} bytes`)
  if (Number(request.headers["content-length"] ?? 0) > maxBodyBytes) return yield* Effect.fail(tooLarge())
  return yield* request.text.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.fromInputUnsafe(maxBodyBytes)),
    Effect.mapError(({ reason }) =>
      reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
        ? tooLarge()
        : refusal(400, "the body could not be read"),
    ),
  )
})

/**
 * Reads the body of the current request as JSON. Fails with an error of `refusal` if it is larger than `maxBodyBytes`, is not
 * JSON, or has too many lists and objects.
 *
 * @example
 * ```ts
 * const body = yield* jsonBody(32 * 1024 * 1024, (status, message) => new Error(`${status}: ${message}`))
 * ```
 */
export const jsonBody = Effect.fnUntraced(function* <E>(maxBodyBytes: number, refusal: Refusal<E>) {
  const text = yield* bodyText(maxBodyBytes, refusal)
  return yield* Effect.try({
    try: () => jsonValue(text, mostLists),
    catch: (error) =>
      refusal(400, error instanceof RangeError ? `the body: ${error.message}` : "the body is not valid JSON"),
  })
})
