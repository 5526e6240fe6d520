/**
 * Calls models by OpenAI's chat completions protocol: OpenAI itself, and other servers with the same protocol (vLLM,
 * llama.cpp, Ollama, Gemini, gateways). A call makes one attempt; the middleware `retrying` repeats it.
 *
 * @example
 * ```ts
 * const lm = yield* OpenAi.make({ model: "qwen3", baseUrl: "http://127.0.0.1:8000/v1" })
 * const { content } = yield* lm.complete({
 *   ...Chat.LmRequest.defaults,
 *   model: "qwen3",
 *   messages: [{ role: "user", content: "Hello" }],
 * })
 * ```
 */
import { Effect, Layer, Schema, Stream } from "effect"
import { LanguageModel } from "effect/ai"
import type { HttpClient } from "effect/http"
import type { Completion, LmRequest } from "../Chat.ts"
import { providerOf } from "./gathering.ts"
import { answered, broken, events, read, refusedInBody, whole } from "./http.ts"
import type { LmError } from "../LmError.ts"
import {
  completionIdsOf,
  completionOf,
  type Dialect,
  type Gathered,
  gather,
  gathered,
  isFailed,
  Piece,
  requestBody,
  Whole,
} from "./openAiWire.ts"
import { type JsonFormat, make as makeLanguageModel, type Provider } from "./Provider.ts"
import { type Protocol, serverOf, type ServerOptions } from "./Server.ts"

export const openAiUrl = "https://api.openai.com/v1"
export const geminiUrl = "https://generativelanguage.googleapis.com/v1beta/openai"

export interface OpenAiOptions extends ServerOptions {
  /** Streams all answers: some gateways close a connection that is silent for a minute. */
  readonly streaming?: boolean
  /** The number of tokens that Gemini may think; other servers ignore it. */
  readonly thinkingBudget?: number | null
  /** Fields that are added to every request. */
  readonly extra?: Readonly<Record<string, unknown>>
}

const variables: Readonly<Record<string, string>> = { [openAiUrl]: "OPENAI_API_KEY", [geminiUrl]: "GOOGLE_API_KEY" }

/** The protocol of OpenAI and compatible servers. */
export const protocol: Protocol = {
  at: openAiUrl,
  variableOf: ({ href }) => variables[href] ?? null,
  keyHeader: "authorization",
  headers: {},
}

const thinking = (url: URL, budget: number | null | undefined): Readonly<Record<string, unknown>> =>
  url.href === geminiUrl && typeof budget === "number"
    ? { extra_body: { google: { thinking_config: { thinking_budget: budget } } } }
    : {}

/** Connects to a server. Each request names its model; the `model` of the options is for requests that name none. */
export const make = Effect.fnUntraced(function* (
  options: OpenAiOptions,
): Effect.fn.Return<Provider, LmError, HttpClient.HttpClient> {
  const { model } = options
  const server = yield* serverOf(options, protocol)
  const { baseUrl } = server
  // OpenAI and Gemini refuse unknown fields; other servers ignore them. So ask only other servers for token ids.
  const dialect: Dialect = {
    tokenIds: protocol.variableOf(baseUrl) === null,
    extra: { ...thinking(baseUrl, options.thinkingBudget), ...options.extra },
  }
  const path = "chat/completions"
  const readWhole = read(server, Whole)
  const readPiece = read(server, Piece)
  const readPrompt = read(server, Schema.Struct({ prompt: Schema.String }))
  const readTokens = read(server, Schema.Struct({ tokens: Schema.Array(Schema.Int) }))

  const gatherWhole = (request: LmRequest, into: Gathered, format?: JsonFormat): Effect.Effect<void, LmError> =>
    whole(server, path, requestBody(request, dialect, { format, stream: false })).pipe(
      Effect.flatMap(readWhole),
      Effect.flatMap((body) =>
        isFailed(body) ? Effect.fail(refusedInBody(server, body)) : Effect.sync(() => void gather(into, body)),
      ),
    )

  /** Streams the texts of an answer; at the end, `into` holds the whole answer. */
  const texts = (request: LmRequest, into: Gathered, format?: JsonFormat): Stream.Stream<string, LmError> => {
    let ended = false
    return events(server, path, requestBody(request, dialect, { format, stream: true })).pipe(
      Stream.takeUntil((data) => (ended = data === "[DONE]")),
      Stream.filter((data) => data !== "[DONE]"),
      Stream.mapEffect(readPiece),
      Stream.mapEffect((piece) =>
        isFailed(piece) ? Effect.fail(refusedInBody(server, piece)) : Effect.succeed(gather(into, piece)),
      ),
      Stream.concat(
        Stream.suspend(() =>
          ended || into.finish !== null ? Stream.empty : Stream.fail(broken(server, "the stream has no end event")),
        ),
      ),
    )
  }

  /** Asks llama.cpp for the token ids of the prompt, which its answers do not hold. */
  const promptIds = Effect.fnUntraced(function* (request: LmRequest): Effect.fn.Return<ReadonlyArray<number>, LmError> {
    const at = (name: string): string => `${baseUrl.pathname.replace(/\/v1$/, "")}/${name}`
    const body = requestBody(request, dialect, { stream: false })
    const { prompt } = yield* Effect.flatMap(whole(server, at("apply-template"), body), readPrompt)
    const content = { content: prompt, add_special: true, parse_special: true }
    return (yield* Effect.flatMap(whole(server, at("tokenize"), content), readTokens)).tokens
  })

  const completed = (request: LmRequest, from: Gathered): Effect.Effect<Completion, LmError> =>
    Effect.flatMap(traced(request, from), (completion) => answered(server, completion, from))

  const traced = (request: LmRequest, from: Gathered): Effect.Effect<Completion> => {
    const lacksPrompt = request.traceTokens && dialect.tokenIds && from.promptIds === null
    if (!lacksPrompt || completionIdsOf(from).length === 0) return Effect.succeed(completionOf(request, from))
    return promptIds(request).pipe(
      // Only llama.cpp has these endpoints. Without them the answer has no trace, but is valid.
      Effect.orElseSucceed(() => null),
      Effect.map((ids) => {
        const counted = from.usage?.inputTokens ?? 0
        // If the server counted another number of tokens, its template added something to this call: give no trace.
        from.promptIds = ids !== null && counted > 0 && counted !== ids.length ? null : ids
        return completionOf(request, from)
      }),
    )
  }

  return providerOf<Gathered>({
    model,
    streaming: options.streaming ?? false,
    empty: gathered,
    whole: gatherWhole,
    texts,
    completed,
  })
})

/** Provides Effect's `LanguageModel` by a server with OpenAI's protocol. */
export const layer = (
  options: OpenAiOptions,
): Layer.Layer<LanguageModel.LanguageModel, LmError, HttpClient.HttpClient> =>
  Layer.effect(LanguageModel.LanguageModel, Effect.flatMap(make(options), makeLanguageModel))
