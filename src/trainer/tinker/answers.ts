/** Makes the failures of requests, and the responses of Tinker's protocol. */
import { Effect, Schema } from "effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { isPlain } from "../../base/config/plain.ts"
import { ApiError, badRequest } from "../../decoder/serve/ApiError.ts"
import { json } from "../../decoder/serve/responses.ts"
import type { Outcome } from "./wire/outcomes.ts"

export const failedBy = (category: "user" | "server", error: string): Outcome => ({ _tag: "Failed", error, category })

/** Converts a refusal to the outcome of a request that was already accepted. */
export const outcomeOfRefusal = ({ status, message }: ApiError): Outcome =>
  failedBy(status >= 500 ? "server" : "user", message)

/** Makes the response to a request that was refused: the message, who caused it, and the wrong key. */
export const refusal = ({ status, code, param, message }: ApiError): HttpServerResponse.HttpServerResponse => {
  const category = status >= 500 ? "server" : "user"
  const response = json({ error: message, detail: message, category, code, param }, status)
  return status === 429 || status === 503 ? HttpServerResponse.setHeader(response, "retry-after", "1") : response
}

export const notFound = (param: string, message: string): ApiError =>
  new ApiError({ status: 404, code: "not_found", param, message: `${param}: ${message}` })

/**
 * The error of a part of the protocol that this server lacks. Its status is not 501, because clients send a request again after
 * any status from 500 on.
 */
export const notImplemented = (param: string | null, message: string): ApiError =>
  new ApiError({
    status: 422,
    code: "not_implemented",
    param,
    message: param === null ? message : `${param}: ${message}`,
  })

/** Makes a function that decodes an object with a Schema. It fails with an error that names the wrong key. */
export const decoderOf = <S extends Schema.Codec<unknown, unknown>>(
  schema: S,
): ((body: unknown) => Effect.Effect<S["Type"], ApiError>) => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (body) =>
    isPlain(body)
      ? Effect.mapError(decode(body), ({ message }) => {
          const [, key = null] = /at (\[[\s\S]*\])\s*$/.exec(message) ?? []
          const param =
            key === null
              ? null
              : key
                  .replaceAll(/\["?|"?\]/g, ".")
                  .replaceAll(/\.+/g, ".")
                  .slice(1, -1)
          const [problem] = message.split("\n")
          return badRequest(param === null ? problem : `${param}: ${problem}`, param)
        })
      : Effect.fail(badRequest("expected a JSON object as the body"))
}
