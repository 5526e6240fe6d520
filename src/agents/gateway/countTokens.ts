/** Answers `POST /v1/messages/count_tokens` of Anthropic's messages: how many tokens a request has. */
import { Effect } from "effect"
import type { Plain } from "../../base/config/plain.ts"
import { LmRequest } from "../lm/Chat.ts"
import { expectedTokens } from "../lm/middleware/limited.ts"
import type { GatewayError } from "./GatewayError.ts"
import { messages } from "./protocols/messages.ts"
import type { Session } from "./Sessions.ts"

/** Returns the body of the answer. If the model's server does not speak the protocol, the number is an estimate. */
export const countTokens = (
  { count = null }: Session,
  body: Plain,
  headers: Readonly<Record<string, string>>,
): Effect.Effect<string, GatewayError> =>
  count !== null
    ? count(body, headers)
    : Effect.map(
        // Such a request has no limit of tokens, but is otherwise a request for an answer.
        messages.decode({ ...body, max_tokens: 1 }, () => undefined),
        ({ messages: prompt, settings: { tools = [] } }) =>
          JSON.stringify({
            input_tokens: expectedTokens({ ...LmRequest.defaults, model: "", messages: prompt, tools }),
          }),
      )
