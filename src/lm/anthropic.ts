/**
 * Models behind Anthropic's messages. A call is one try; `retrying` makes more of them.
 *
 * @example
 * ```ts
 * const lm = yield* Anthropic.make({ model: "claude-sonnet-4-5", thinkingBudget: 2048 })
 * const { content } = yield* lm.complete({
 *   ...LmRequest.defaults,
 *   model: "claude-sonnet-4-5",
 *   messages: [{ role: "user", content: "Hello" }],
 * })
 * ```
 */
import { Effect, Layer, type Redacted, Stream } from "effect"
import { LanguageModel } from "effect/ai"
import { HttpClient } from "effect/http"
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
import { baseUrlOf, broken, defaultTimeoutS, events, read, refusedInBody, type Server, whole } from "./http.ts"
import { keyOf } from "./keys.ts"
import type { LmError } from "./LmError.ts"
import { make as makeLanguageModel, type Provider } from "./Provider.ts"

export const anthropicUrl = "https://api.anthropic.com/v1"

export interface Options {
  /** As the server calls it. */
  readonly model: string
  /** Without a path it means `/v1`; null: Anthropic's. */
  readonly baseUrl?: string | null
  /** `${NAME}` names a variable of the environment. */
  readonly apiKey?: Redacted.Redacted | null
  /** The variable with the key, where `apiKey` says nothing: `ANTHROPIC_API_KEY` for Anthropic's own address. */
  readonly keyVariable?: string | null
  /** In seconds: how long a try may take. */
  readonly timeoutS?: number
  /** Asks for whole answers as streams, too: a long one would leave the connection silent for too long. */
  readonly streaming?: boolean
  /** How many tokens may be thought before the answer, in addition to `maxOutputTokens`; null: none. */
  readonly thinkingBudget?: number | null
}

export const make = Effect.fnUntraced(function* (
  options: Options,
): Effect.fn.Return<Provider, LmError, HttpClient.HttpClient> {
  const { model, apiKey, thinkingBudget = null } = options
  const baseUrl = yield* baseUrlOf(model, options.baseUrl ?? anthropicUrl)
  const own = baseUrl.href === anthropicUrl ? "ANTHROPIC_API_KEY" : null
  const server: Server = {
    model,
    client: yield* HttpClient.HttpClient,
    baseUrl,
    key: yield* keyOf({ model, apiKey, variable: options.keyVariable === undefined ? own : options.keyVariable }),
    keyHeader: "x-api-key",
    headers: { "anthropic-version": "2023-06-01" },
    timeoutS: options.timeoutS ?? defaultTimeoutS,
  }
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
    completed: (request, from, format) => Effect.sync(() => completionOf(request, from, format)),
  })
})

/** The same as Effect's own service. */
export const layer = (options: Options): Layer.Layer<LanguageModel.LanguageModel, LmError, HttpClient.HttpClient> =>
  Layer.effect(LanguageModel.LanguageModel, Effect.flatMap(make(options), makeLanguageModel))
