/**
 * Calls models over HTTP by OpenAI's chat completions protocol: OpenAI itself, and other servers with the same protocol
 * (vLLM, llama.cpp, Ollama, Gemini, gateways). A call makes one attempt; the middleware `retrying` repeats it.
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
import { Effect, Schema } from "effect"
import type { LmRequest } from "../Chat.ts"
import { CurrentExchange } from "../RawExchange.ts"
import { passerOf, providerOf } from "./wireProvider.ts"
import { read, requestText } from "./http.ts"
import { passedBody, passedBytes } from "./openAiPassed.ts"
import * as Responses from "./openAiResponsesWire.ts"
import * as Wire from "./openAiWire.ts"
import { languageModel, type Provider } from "./Provider.ts"
import { type ServerProtocol, serverOf, type LmServerOptions } from "./Server.ts"

export const openAiUrl = "https://api.openai.com/v1"
export const geminiUrl = "https://generativelanguage.googleapis.com/v1beta/openai"

export interface OpenAiOptions extends LmServerOptions {
  /** Whether to stream all answers, because some gateways close a connection that is silent for a minute. */
  readonly streaming?: boolean
  /** The number of tokens that Gemini may use for thinking; other servers ignore it. */
  readonly thinkingBudget?: number | null
  /** Fields that are added to every request. */
  readonly extra?: Readonly<Record<string, unknown>>
}

const variables: Readonly<Record<string, string>> = { [openAiUrl]: "OPENAI_API_KEY", [geminiUrl]: "GOOGLE_API_KEY" }

/** The protocol of OpenAI and compatible servers. */
export const protocol: ServerProtocol = {
  at: openAiUrl,
  variableOf: ({ href }) => variables[href] ?? null,
  keyHeader: "authorization",
  headers: {},
}

const thinking = (url: URL, budget: number | null | undefined): Readonly<Record<string, unknown>> =>
  url.href === geminiUrl && typeof budget === "number"
    ? { extra_body: { google: { thinking_config: { thinking_budget: budget } } } }
    : {}

/**
 * Makes the provider that calls a server; this sends no request yet. `options.model` is used for requests that name no model.
 */
export const make = Effect.fnUntraced(function* (options: OpenAiOptions) {
  const server = yield* serverOf(options, protocol)
  const { baseUrl } = server
  // OpenAI and Gemini refuse unknown fields; other servers ignore them. So ask only other servers for token ids.
  const dialect: Wire.Dialect = {
    tokenIds: protocol.variableOf(baseUrl) === null,
    extra: { ...thinking(baseUrl, options.thinkingBudget), ...options.extra },
  }
  const readPrompt = read(server, Schema.Struct({ prompt: Schema.String }))
  const readTokens = read(server, Schema.Struct({ tokens: Schema.Array(Schema.Int) }))

  /** Asks llama.cpp for the token ids of the prompt, which are not part of its answers. */
  const promptIds = Effect.fnUntraced(function* (request: LmRequest) {
    const at = (name: string): string => `${baseUrl.pathname.replace(/\/v1$/, "")}/${name}`
    const body = Wire.requestBody(request, dialect, { stream: false })
    const { prompt } = yield* Effect.flatMap(requestText(server, at("apply-template"), body), readPrompt)
    const content = { content: prompt, add_special: true, parse_special: true }
    return (yield* Effect.flatMap(requestText(server, at("tokenize"), content), readTokens)).tokens
  })

  const complete = Effect.fnUntraced(function* (request: LmRequest, from: Wire.OpenAiAnswer) {
    const lacksPrompt = request.traceTokens && dialect.tokenIds && from.promptIds === null
    if (!lacksPrompt || Wire.completionIdsOf(from).length === 0) return
    // Only llama.cpp has the endpoints that `promptIds` calls. Without them, a valid answer has no token trace.
    const ids = yield* Effect.orElseSucceed(promptIds(request), () => null)
    const counted = from.usage?.inputTokens ?? 0
    // If the server counted another number of tokens, its template has added tokens to this call, so there is no trace.
    from.promptIds = ids !== null && counted > 0 && counted !== ids.length ? null : ids
  })

  const provider = providerOf(server, options.streaming ?? false, {
    path: "chat/completions",
    body: (request, form) => Wire.requestBody(request, dialect, form),
    answerSchema: Wire.Whole,
    pieceSchema: Wire.AnswerPiece,
    endOfStream: "[DONE]",
    empty: () => new Wire.OpenAiAnswer(),
    gatherWhole: Wire.gather,
    gather: Wire.gather,
    isComplete: ({ ended, finish }) => ended || finish !== null,
    complete,
    completionOf: Wire.completionOf,
    factsOf: (from) => from,
    protocol: "chat",
    passedBody: (body, request) => passedBody(body, request, dialect),
    passedBytes: passedBytes,
  })
  const passResponse = passerOf(server, {
    path: "responses",
    answerSchema: Responses.Whole,
    pieceSchema: Responses.Piece,
    empty: () => new Responses.OpenAiResponse(),
    gatherWhole: Responses.gatherWhole,
    gather: Responses.gather,
    isComplete: ({ ended }) => ended,
    completionOf: Responses.completionOf,
    factsOf: Responses.factsOf,
    idOf: ({ id }) => id,
    passedBody: Responses.passedBody,
    passedBytes: () => (bytes) => bytes,
  })
  return withResponses(provider, passResponse)
})

/** Makes the provider pass on bodies of OpenAI's responses, too. */
const withResponses = (provider: Provider, passResponse: ReturnType<typeof passerOf>): Provider => ({
  ...provider,
  complete: (request, format) =>
    Effect.flatMap(CurrentExchange, (raw) =>
      raw?.protocol === "responses" && format === undefined
        ? passResponse(raw, request)
        : provider.complete(request, format),
    ),
})

/** Provides Effect's `LanguageModel`; its calls go to a server with OpenAI's protocol. */
export const layer = (options: OpenAiOptions) => languageModel(make(options))
