/**
 * Models behind Anthropic's messages. A call is one try; `retrying` makes more of them.
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
  /** Asks for whole answers as streams, too: a long one would leave the connection silent for too long. */
  readonly streaming?: boolean
  /** How many tokens may be thought before the answer, in addition to `maxOutputTokens`; null: none. */
  readonly thinkingBudget?: number | null
}

/** The models at an address, which are asked there by their names. */
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
            into.ended ? Stream.empty : Stream.fail(broken(server, "it didn't say that it ended")),
          ),
        ),
      ),
    completed: (request, from, format) => {
      // A stop sequence may be all that it said.
      const hasContent = from.hasContent || from.calls.length > 0 || from.finish === "stop_sequence"
      const { finish } = from
      return answered(server, completionOf(request, from, format), { hasContent, refusal: "", finish })
    },
  })
})

/** The same as Effect's own service. */
export const layer = (
  options: AnthropicOptions,
): Layer.Layer<LanguageModel.LanguageModel, LmError, HttpClient.HttpClient> =>
  Layer.effect(LanguageModel.LanguageModel, Effect.flatMap(make(options), makeLanguageModel))
