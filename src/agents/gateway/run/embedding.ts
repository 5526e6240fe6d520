/**
 * Passes requests for embeddings on to the server of a gateway's model. They count against the budget, wait for the limits and are
 * retried as calls of the model are.
 */
import { Effect, Schema } from "effect"
import { jsonText } from "../../../base/config/jsonText.ts"
import type { Plain } from "../../../base/config/plain.ts"
import { type Completion, LmRequest, noTokens } from "../../lm/Chat.ts"
import { inEmbeddingSpan } from "../../lm/genAi.ts"
import type { LmService, Middleware } from "../../lm/Lm.ts"
import * as Lms from "../../lm/Lms.ts"
import { budgeted, type SpendingCounter } from "../../lm/middleware/budgeted.ts"
import { retrying } from "../../lm/middleware/retrying.ts"
import * as OpenAiEmbeddings from "../../lm/providers/openAiEmbeddings.ts"
import { fromLm, type GatewayError } from "../GatewayError.ts"
import type { GatewayConfig } from "./GatewayConfig.ts"

interface EmbedderOptions {
  /** The counter of what the gateway has spent. */
  readonly spent: SpendingCounter
  /** The limits, which the calls of the model share. */
  readonly limiting: Middleware
}

const Counted = jsonText(Schema.Struct({ usage: Schema.Struct({ prompt_tokens: Schema.Int }) }))
const decodeCounted = Schema.decodeUnknownEffect(Counted)

/** Makes the completion that stands for an answer, for the sake of its number of tokens; 0 if the server reports none. */
const completionOf = (model: string, text: string): Effect.Effect<Completion> =>
  decodeCounted(text).pipe(
    Effect.map(({ usage }) => usage.prompt_tokens),
    Effect.orElseSucceed(() => 0),
    Effect.map((inputTokens) => ({
      content: "",
      toolCalls: [],
      finishReason: "stop",
      usage: { ...noTokens, inputTokens },
      tokens: null,
      model,
      attempts: 1,
    })),
  )

const textOf = (input: unknown): string => (typeof input === "string" ? input : JSON.stringify(input ?? ""))

/** Makes the function that passes requests for embeddings on; null if the model's server has none. */
export const embedder = Effect.fnUntraced(function* (
  { aliases, anyModel, lmConfig }: GatewayConfig,
  { spent, limiting }: EmbedderOptions,
) {
  const { model, baseUrl, apiKey, timeoutS, maxAnswerMb, cache, budget, prices } = lmConfig
  if (Lms.destinationOf(lmConfig) === undefined || lmConfig.protocol !== "openai" || cache === "replay") return null
  const { pass } = yield* OpenAiEmbeddings.make({ model, baseUrl, apiKey, timeoutS, maxAnswerMb, maxRetries: 0 })
  const middleware = [budgeted(budget, prices, spent), limiting, retrying(lmConfig)]
  return (body: Plain): Effect.Effect<string, GatewayError> => {
    const name = typeof body["model"] === "string" ? body["model"] : ""
    const target = aliases.find((alias) => alias.name === name)?.model ?? (anyModel && name !== "" ? name : model)
    let answer = ""
    const once: LmService = {
      complete: () =>
        Effect.flatMap(pass({ ...body, model: target }), (text) => {
          answer = text
          return completionOf(target, text)
        }),
    }
    const { complete } = middleware.reduce((inner, wrap) => wrap(inner), once)
    const messages = [{ role: "user" as const, content: textOf(body["input"]) }]
    const asked = inEmbeddingSpan(target, complete({ ...LmRequest.defaults, model: target, messages }))
    return Effect.mapError(
      Effect.map(asked, () => answer),
      fromLm,
    )
  }
})
