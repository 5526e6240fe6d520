/** Defines the error of a request that the gateway refuses or cannot answer. Each protocol has its own form of it. */
import { Schema } from "effect"
import type { LmError } from "../lm/LmError.ts"

/** Reports that a request was refused or failed. The message is for the agent and has no secrets. */
export class GatewayError extends Schema.TaggedError<GatewayError>()("GatewayError", {
  /** The status of the HTTP response. */
  status: Schema.Int,
  /** A code for programs, e.g. `session_ended`. */
  code: Schema.String,
  /** One line that says what is wrong, and what was expected. */
  message: Schema.String,
  /** The delay in seconds after which the same request may succeed; left out if it would fail again. */
  retryAfter: Schema.optionalKey(Schema.Finite),
}) {}

export const gatewayError = (status: number, code: string, message: string): GatewayError =>
  new GatewayError({ status, code, message })

/** Makes the error of a request that the agent must change. */
export const badRequest = (message: string): GatewayError => gatewayError(400, "invalid_request", message)

/** The error for a fault of the gateway. The program's log has the details; the agent does not get them. */
export const internalError = gatewayError(500, "gateway_failed", "the gateway failed to answer; its log says why")

/** The status and the code for each reason for which a call of the model fails. */
const refusals: Readonly<Record<LmError["reason"], readonly [number, string]>> = {
  unauthorised: [502, "upstream_unauthorised"],
  rejected: [400, "invalid_request"],
  unavailable: [502, "upstream_unavailable"],
  exhausted: [502, "upstream_unavailable"],
  malformed: [502, "upstream_malformed"],
  budget: [429, "insufficient_quota"],
  cache: [424, "not_recorded"],
  refused: [400, "content_filter"],
}

/** Converts the error of a call. The gateway has retried the call already, so no client should try again. */
export const fromLm = (error: LmError): GatewayError => {
  const [status, code] = refusals[error.reason]
  return gatewayError(status, error.promptTooLong === true ? "context_length_exceeded" : code, error.message)
}
