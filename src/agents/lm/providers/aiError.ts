/** Converts errors between Effect's `AiError` and our `LmError`, for `Provider.ts` and `languageModel.ts`. */
import { Duration } from "effect"
import * as AiError from "effect/ai/AiError"
import { oneLine } from "../../../base/text/text.ts"
import { LmError } from "../LmError.ts"

/** Converts an error of Effect's `LanguageModel` or HTTP client to an `LmError`. */
export const fromAiError = (model: string, { reason }: AiError.AiError): LmError => {
  const problem = "description" in reason && reason.description !== undefined ? reason.description : reason.message
  const error = (kind: LmError["reason"], retryAfter?: number): LmError =>
    new LmError({
      model,
      reason: kind,
      attempts: 1,
      message: problem.startsWith(`${model}: `) ? oneLine(problem) : `${model}: ${oneLine(problem)}`,
      ...(retryAfter === undefined ? {} : { retryAfter }),
    })
  switch (reason._tag) {
    case "RateLimitError":
      return error("unavailable", reason.retryAfter === undefined ? undefined : Duration.toSeconds(reason.retryAfter))
    case "InternalProviderError":
      return error("unavailable", retryAfterOf(reason.metadata))
    case "NetworkError":
      return error(reason.reason === "TransportError" ? "unavailable" : "rejected")
    case "AuthenticationError":
      return error("unauthorised")
    case "InvalidResponseError":
    case "InvalidOutputError":
    case "StructuredOutputError":
      return error("malformed")
    case "ContentPolicyError":
      return error("refused")
    default:
      return error("rejected")
  }
}

const retryAfterOf = (metadata: AiError.ProviderMetadata): number | undefined => {
  const { retryAfter } = metadata
  return typeof retryAfter === "number" ? retryAfter : undefined
}

const reasonOf = (error: LmError): AiError.AiErrorReason => {
  const description = error.message
  switch (error.reason) {
    case "unauthorised":
      return new AiError.AuthenticationError({ kind: "InvalidKey", description })
    case "unavailable":
    case "exhausted":
      return new AiError.InternalProviderError({
        description,
        metadata: error.retryAfter === undefined ? {} : { retryAfter: error.retryAfter },
      })
    case "malformed":
      return new AiError.InvalidResponseError({ description })
    case "refused":
      return new AiError.ContentPolicyError({ description })
    case "budget":
      return new AiError.QuotaExhaustedError({})
    default:
      return new AiError.InvalidRequestError({ description })
  }
}

/** Converts an `LmError` to Effect's `AiError`. It is used if one of our models is provided as a `LanguageModel`. */
export const toAiError = (method: string, error: LmError): AiError.AiError =>
  AiError.make({ module: "effect-rl", method, reason: reasonOf(error) })
