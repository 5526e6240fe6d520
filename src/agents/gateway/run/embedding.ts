/**
 * Passes requests for embeddings on to the server of a gateway's model. They count against the budget, wait for the limits and are
 * retried as calls of the model are.
 */
import { Effect, Schema } from "effect"
import { jsonText } from "../../../base/text/jsonText.ts"
import { inEmbeddingSpan } from "../../lm/genAi.ts"
import type { Middleware } from "../../lm/Lm.ts"
import * as Lms from "../../lm/Lms.ts"
import { budgeted, type SpendingCounter } from "../../lm/middleware/budgeted.ts"
import { retrying } from "../../lm/middleware/retrying.ts"
import * as OpenAiEmbeddings from "../../lm/providers/openAiEmbeddings.ts"
import { forwarding } from "./forwarding.ts"
import type { GatewayConfig } from "./GatewayConfig.ts"

interface EmbedderOptions {
  /** The counter of what the gateway has spent. */
  readonly spent: SpendingCounter
  /** The limits, which the calls of the model share. */
  readonly limiting: Middleware
}

const Counted = jsonText(Schema.Struct({ usage: Schema.Struct({ prompt_tokens: Schema.Int }) }))
const decodeCounted = Schema.decodeUnknownEffect(Counted)

/** Returns the number of tokens of an answer; 0 if the server reports none. */
const tokensOf = (text: string): Effect.Effect<number> =>
  decodeCounted(text).pipe(
    Effect.map(({ usage }) => usage.prompt_tokens),
    Effect.orElseSucceed(() => 0),
  )

const textOf = (input: unknown): string => (typeof input === "string" ? input : JSON.stringify(input ?? ""))

/** Makes the function that passes requests for embeddings on; null if the model's server has none. */
export const embedder = Effect.fnUntraced(function* (config: GatewayConfig, { spent, limiting }: EmbedderOptions) {
  const { model, baseUrl, apiKey, timeoutS, maxAnswerMb, cache, budget, prices, protocol } = config.lmConfig
  if (Lms.destinationOf(config.lmConfig) === undefined || protocol !== "openai" || cache === "replay") return null
  const { pass } = yield* OpenAiEmbeddings.make({ model, baseUrl, apiKey, timeoutS, maxAnswerMb, maxRetries: 0 })
  const inSpan: Middleware = ({ complete }) => ({
    complete: (request) => inEmbeddingSpan(request.model, complete(request)),
  })
  return forwarding(config, {
    pass,
    middleware: [budgeted(budget, prices, spent), limiting, retrying(config.lmConfig), inSpan],
    promptOf: ({ input }) => textOf(input),
    tokensOf,
  })
})
