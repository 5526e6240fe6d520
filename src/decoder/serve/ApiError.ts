/** Defines the error of a failed request to the server, and its form in OpenAI's protocol. */
import { Schema } from "effect"
import { snakeCase } from "../../base/config/plain.ts"
import type { EngineError } from "../inference/EngineError.ts"

/** Reports that a request was refused or failed. The message is for the client and does not show internals. */
export class ApiError extends Schema.TaggedError<ApiError>()("ApiError", {
  /** The status of the HTTP response. */
  status: Schema.Int,
  /** A code for programs, e.g. `model_not_found`; null if there is no special one. */
  code: Schema.NullOr(Schema.String),
  /** The path of the wrong key in the request's body; null if the whole request is wrong. */
  param: Schema.NullOr(Schema.String),
  message: Schema.String,
}) {}

/** Makes the error of a request that the client must change. */
export const badRequest = (message: string, param: string | null = null, code: string | null = null): ApiError =>
  new ApiError({ status: 400, code, param, message })

export const modelNotFound = (model: string): ApiError =>
  new ApiError({
    status: 404,
    code: "model_not_found",
    param: "model",
    message: `the model "${model}" does not exist; GET /v1/models lists those that do`,
  })

/** The error for a fault of the server. The server's log has the details; the client does not get them. */
export const internalError = new ApiError({
  status: 500,
  code: null,
  param: null,
  message: "the server failed to answer this request; its log says why",
})

export const unavailable = (message: string): ApiError =>
  new ApiError({ status: 503, code: "unavailable", param: null, message })

/** The status and the code for each reason of the engine that the client has caused. */
const refusals: Readonly<
  Partial<Record<EngineError["reason"], { readonly status: number; readonly code: string | null }>>
> = {
  invalidRequest: { status: 400, code: null },
  promptTooLong: { status: 400, code: "context_length_exceeded" },
  tokenOutOfRange: { status: 400, code: null },
  wrongWeights: { status: 400, code: "wrong_weights" },
  full: { status: 409, code: "no_room_for_adapter" },
}

/** Returns the key of a request for a setting of the engine: `logit_bias` for `logitBias`. */
const paramOf = (part: EngineError["part"]): string | null =>
  part === undefined ? null : part === "jsonSchema" ? "response_format" : snakeCase(part)

/** Converts an error of the engine. A fault of the model or the device becomes `internalError`. */
export const fromEngine = ({ reason, model, part, message }: EngineError): ApiError => {
  if (reason === "unknownModel") return modelNotFound(model)
  if (reason === "closed") return unavailable("the server is stopping")
  const refusal = refusals[reason]
  return refusal === undefined ? internalError : new ApiError({ ...refusal, param: paramOf(part), message })
}

const types: Readonly<Record<number, string>> = { 429: "rate_limit_error", 500: "server_error", 503: "server_error" }

/** Encodes an error as the body of a response, or as the data of a stream's event. */
export const errorBody = ({ status, code, param, message }: ApiError) => ({
  error: { message, type: types[status] ?? "invalid_request_error", param, code },
})
