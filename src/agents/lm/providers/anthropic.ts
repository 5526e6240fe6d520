/**
 * Calls models over HTTP by Anthropic's messages protocol. A call makes one attempt; `retrying` repeats it.
 *
 * @example
 * ```ts
 * const lm = yield* Anthropic.make({ model: "claude-sonnet-4-5", thinkingBudget: 2048 })
 * const { content } = yield* lm.complete({
 *   ...Chat.LmRequest.defaults,
 *   model: "claude-sonnet-4-5",
 *   messages: [{ role: "user", content: "Hello" }],
 * })
 * ```
 */
import { Effect } from "effect"
import * as Wire from "./anthropicWire.ts"
import { providerOf } from "./wireProvider.ts"
import { languageModel } from "./Provider.ts"
import { type ServerProtocol, serverOf, type LmServerOptions } from "./Server.ts"

export const anthropicUrl = "https://api.anthropic.com/v1"

/** The protocol of Anthropic. */
export const protocol: ServerProtocol = {
  at: anthropicUrl,
  variableOf: ({ href }) => (href === anthropicUrl ? "ANTHROPIC_API_KEY" : null),
  keyHeader: "x-api-key",
  headers: { "anthropic-version": "2023-06-01" },
}

export interface AnthropicOptions extends LmServerOptions {
  /** Whether to stream all answers, so that the connection is not silent during a long answer. */
  readonly streaming?: boolean
  /** The number of tokens for thinking before the answer, in addition to `maxOutputTokens`; null turns thinking off. */
  readonly thinkingBudget?: number | null
}

/**
 * Makes the provider that calls a server; this sends no request yet. `options.model` is used for requests that name no model.
 */
export const make = Effect.fnUntraced(function* (options: AnthropicOptions) {
  const { thinkingBudget = null, streaming = false } = options
  const server = yield* serverOf(options, protocol)
  return providerOf(server, streaming, {
    path: "messages",
    body: (request, form) => Wire.requestBody(request, thinkingBudget, form),
    answerSchema: Wire.Whole,
    pieceSchema: Wire.Piece,
    empty: () => new Wire.AnthropicAnswer(),
    gatherWhole: Wire.gatherWhole,
    gather: Wire.gather,
    isComplete: ({ ended }) => ended,
    completionOf: Wire.completionOf,
    // The server removes the stop sequence from the answer, so a valid answer can be empty.
    factsOf: ({ hasContent, calls, finish }) => ({
      hasContent: hasContent || calls.length > 0 || finish === "stop_sequence",
      refusal: "",
      finish,
    }),
    protocol: "messages",
    passedBody: Wire.passedBody,
    passedBytes: () => (bytes) => bytes,
  })
})

/** Provides Effect's `LanguageModel`; its calls go to a server with Anthropic's protocol. */
export const layer = (options: AnthropicOptions) => languageModel(make(options))
