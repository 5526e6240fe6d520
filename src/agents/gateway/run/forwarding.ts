/** Passes requests that are no calls of a model on to the server of a gateway's model, with the limits and retries of calls. */
import { Effect } from "effect"
import type { Plain } from "../../../base/config/plain.ts"
import { type Completion, LmRequest, noTokens } from "../../lm/Chat.ts"
import type { LmService, Middleware } from "../../lm/Lm.ts"
import type { LmError } from "../../lm/LmError.ts"
import { fromLm, type GatewayError } from "../GatewayError.ts"
import { type GatewayConfig, nameAtServer } from "./GatewayConfig.ts"

interface ForwardingOptions {
  /** Posts a body, which has the model's name at the server, and returns the text of the answer. */
  readonly pass: (body: Plain, headers: Readonly<Record<string, string>>) => Effect.Effect<string, LmError>
  /** The middleware of each request, the first one closest to the server. */
  readonly middleware: ReadonlyArray<Middleware>
  /** Returns the text whose length limits on tokens expect. */
  readonly promptOf: (body: Plain) => string
  /** Returns the number of tokens that an answer reports, which count against the budget. */
  readonly tokensOf: (answer: string) => Effect.Effect<number>
}

/** Makes the completion that stands for an answer, for the sake of its number of tokens. */
const completionOf = (model: string, inputTokens: number): Completion => ({
  content: "",
  toolCalls: [],
  finishReason: "stop",
  usage: { ...noTokens, inputTokens },
  tokens: null,
  model,
  attempts: 1,
})

/** Makes the function that passes bodies on, and returns the texts of the answers. */
export const forwarding =
  (config: GatewayConfig, { pass, middleware, promptOf, tokensOf }: ForwardingOptions) =>
  (body: Plain, headers: Readonly<Record<string, string>> = {}): Effect.Effect<string, GatewayError> => {
    const target = nameAtServer(config, typeof body["model"] === "string" ? body["model"] : "")
    let answer = ""
    const once: LmService = {
      complete: () =>
        Effect.flatMap(pass({ ...body, model: target }, headers), (text) => {
          answer = text
          return Effect.map(tokensOf(text), (tokens) => completionOf(target, tokens))
        }),
    }
    const { complete } = middleware.reduce((inner, wrap) => wrap(inner), once)
    const messages = [{ role: "user" as const, content: promptOf(body) }]
    return Effect.mapError(
      Effect.map(complete({ ...LmRequest.defaults, model: target, messages }), () => answer),
      fromLm,
    )
  }
