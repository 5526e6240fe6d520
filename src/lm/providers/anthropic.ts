/**
 * Calls models by Anthropic's messages protocol. A call makes one attempt; the middleware `retrying` repeats it.
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
import { Effect, Layer, Stream } from "effect"
import { LanguageModel } from "effect/ai"
import type { HttpClient } from "effect/http"
import {
  completionOf,
  type Gathered,
  gather,
  gathered,
  gatherWhole,
  isFailed,
  Piece,
  requestBody,
  Whole,
} from "./anthropicWire.ts"
import { providerOf } from "./gathering.ts"
import { answered, broken, events, read, refusedInBody, whole } from "./http.ts"
import type { LmError } from "../LmError.ts"
import { make as makeLanguageModel, type Provider } from "./Provider.ts"
import { type Protocol, serverOf, type ServerOptions } from "./Server.ts"

export const anthropicUrl = "https://api.anthropic.com/v1"

const protocol: Protocol = {
  at: anthropicUrl,
  variableOf: ({ href }) => (href === anthropicUrl ? "ANTHROPIC_API_KEY" : null),
  keyHeader: "x-api-key",
  headers: { "anthropic-version": "2023-06-01" },
}

export interface AnthropicOptions extends ServerOptions {
  /** Streams all answers, so that the connection does not stay silent during a long one. */
  readonly streaming?: boolean
  /** The number of tokens for thinking before the answer, in addition to `maxOutputTokens`; null turns thinking off. */
  readonly thinkingBudget?: number | null
}

/** Connects to a server. Each request names its model; the `model` of the options is for requests that name none. */
export const make = Effect.fnUntraced(function* (
  options: AnthropicOptions,
): Effect.fn.Return<Provider, LmError, HttpClient.HttpClient> {
  const { model, thinkingBudget = null } = options
  const server = yield* serverOf(options, protocol)
  const path = "messages"
  const readWhole = read(server, Whole)
  const readPiece = read(server, Piece)
  return providerOf<Gathered>({
    model,
    streaming: options.streaming ?? false,
    empty: gathered,
    whole: (request, into, format) =>
      whole(server, path, requestBody(request, thinkingBudget, { format, stream: false })).pipe(
        Effect.flatMap(readWhole),
        Effect.flatMap((answer) =>
          isFailed(answer) ? Effect.fail(refusedInBody(server, answer)) : Effect.sync(() => gatherWhole(into, answer)),
        ),
      ),
    texts: (request, into, format) =>
      events(server, path, requestBody(request, thinkingBudget, { format, stream: true })).pipe(
        Stream.mapEffect(readPiece),
        Stream.mapEffect((piece) =>
          isFailed(piece) ? Effect.fail(refusedInBody(server, piece)) : Effect.sync(() => gather(into, piece)),
        ),
        Stream.takeUntil(() => into.ended),
        Stream.concat(
          Stream.suspend(() =>
            into.ended ? Stream.empty : Stream.fail(broken(server, "the stream has no end event")),
          ),
        ),
      ),
    completed: (request, from, format) => {
      // The server leaves the stop sequence out, so an answer that consists of it alone is empty.
      const hasContent = from.hasContent || from.calls.length > 0 || from.finish === "stop_sequence"
      const { finish } = from
      return answered(server, completionOf(request, from, format), { hasContent, refusal: "", finish })
    },
  })
})

/** Provides Effect's `LanguageModel` by a server with Anthropic's protocol. */
export const layer = (
  options: AnthropicOptions,
): Layer.Layer<LanguageModel.LanguageModel, LmError, HttpClient.HttpClient> =>
  Layer.effect(LanguageModel.LanguageModel, Effect.flatMap(make(options), makeLanguageModel))
