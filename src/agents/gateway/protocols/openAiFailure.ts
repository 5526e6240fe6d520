/** Encodes failures in the form of OpenAI's protocols. */
import type { GatewayError } from "../GatewayError.ts"
import { event } from "./ClientProtocol.ts"

const types: Readonly<Record<number, string>> = {
  401: "authentication_error",
  404: "not_found_error",
  429: "rate_limit_error",
}

/** Encodes a failure as the JSON body of a response. */
export const openAiFailure = ({ status, code, message }: GatewayError): object => ({
  error: {
    message,
    type: types[status] ?? (status >= 500 ? "server_error" : "invalid_request_error"),
    param: null,
    code,
  },
})

/** Encodes a failure after the beginning of a stream as an event. */
export const openAiFailureEvent = (error: GatewayError): string => event(openAiFailure(error))
