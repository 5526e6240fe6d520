/** Passes requests to count tokens on to a server with Anthropic's messages. They cost nothing, but wait for the limits. */
import { Effect } from "effect"
import type { Middleware } from "../../lm/Lm.ts"
import * as Lms from "../../lm/Lms.ts"
import { retrying } from "../../lm/middleware/retrying.ts"
import { protocol } from "../../lm/providers/anthropic.ts"
import { requestText } from "../../lm/providers/http.ts"
import { serverOf } from "../../lm/providers/Server.ts"
import { makeExchange } from "../../lm/RawExchange.ts"
import { forwarding } from "./forwarding.ts"
import type { GatewayConfig } from "./GatewayConfig.ts"

/** Makes the function that passes requests to count tokens on; null if the model's server does not speak the protocol. */
export const tokenCounter = Effect.fnUntraced(function* (config: GatewayConfig, limiting: Middleware) {
  const { model, baseUrl, apiKey, timeoutS, maxAnswerMb, cache } = config.lmConfig
  const speaks = Lms.spokenBy(config.lmConfig).includes("messages")
  if (!speaks || cache === "replay") return null
  const server = yield* serverOf({ model, baseUrl, apiKey, timeoutS, maxAnswerMb }, protocol)
  return forwarding(config, {
    pass: (body, headers) =>
      Effect.flatMap(makeExchange({ protocol: "messages", body, headers }), (raw) =>
        requestText(server, "messages/count_tokens", body, raw),
      ),
    middleware: [limiting, retrying(config.lmConfig)],
    promptOf: () => "",
    tokensOf: () => Effect.succeed(0),
  })
})
