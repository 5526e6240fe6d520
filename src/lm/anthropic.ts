/**
 * Models behind Anthropic's messages, whole answers at once. A call is one try; `retrying` makes more of them.
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
import { Effect, Layer, type Redacted, Schema } from "effect"
import { LanguageModel } from "effect/ai"
import { HttpClient } from "effect/http"
import { isPlain, type Plain } from "../config/Config.ts"
import type { ChatMessage, Completion, FinishReason, LmRequest } from "./Chat.ts"
import { baseUrlOf, defaultTimeoutS, read, refusedInBody, type Server, whole } from "./http.ts"
import { keyOf } from "./keys.ts"
import { jsonOrText } from "./languageModel.ts"
import type { LmError } from "./LmError.ts"
import { type JsonFormat, make as makeLanguageModel, type Provider } from "./Provider.ts"

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
  /** How many tokens may be thought before the answer, in addition to `maxOutputTokens`; null: none. */
  readonly thinkingBudget?: number | null
}

/** This protocol wants a limit in every request. */
const defaultMaxTokens = 4096

type Block = Readonly<Record<string, unknown>>
interface Turn {
  readonly role: "user" | "assistant"
  readonly content: Array<Block>
}

/** A call's arguments have to be an object, whatever a model wrote. */
const inputOf = (said: string): Plain => {
  const input = jsonOrText(said)
  return isPlain(input) ? input : { arguments: said }
}

const blocksOf = (message: ChatMessage): ReadonlyArray<Block> => {
  // A text without a character is refused.
  const text = message.content === "" ? [] : [{ type: "text", text: message.content }]
  if (message.role === "assistant") {
    const calls = message.toolCalls ?? []
    return [
      ...text,
      ...calls.map(({ id, name, arguments: said }) => ({ type: "tool_use", id, name, input: inputOf(said) })),
    ]
  }
  if (message.role !== "tool") return text
  const { toolCallId, content, isError } = message
  return [{ type: "tool_result", tool_use_id: toolCallId, content, ...(isError === true ? { is_error: true } : {}) }]
}

/** Turns alternate, and results of tools are what a user says; who said nothing has no turn. */
const turnsOf = (messages: ReadonlyArray<ChatMessage>): ReadonlyArray<Turn> => {
  const turns: Array<Turn> = []
  for (const message of messages) {
    const content = blocksOf(message)
    const role = message.role === "assistant" ? "assistant" : "user"
    const last = turns.at(-1)
    if (last?.role === role) last.content.push(...content)
    else if (content.length > 0) turns.push({ role, content: [...content] })
  }
  return turns
}

const choices = { auto: { type: "auto" }, none: { type: "none" }, required: { type: "any" } } as const

/** What is sent for a request; what it leaves open is left out. */
const requestBody = (
  request: LmRequest,
  thinkingBudget: number | null,
  format: JsonFormat | undefined,
): Readonly<Record<string, unknown>> => {
  const begin = request.messages.findIndex(({ role }) => role !== "system")
  const system = request.messages.slice(0, begin < 0 ? undefined : begin).map(({ content }) => content)
  // Between calls of tools, thoughts could only go on if they were sent along, and nobody keeps them.
  const budget = request.messages.at(-1)?.role === "tool" || format !== undefined ? null : thinkingBudget
  const tools = request.tools.map(({ name, description, parameters }) => ({
    name,
    description,
    input_schema: parameters,
  }))
  const limit = request.maxOutputTokens ?? defaultMaxTokens
  return {
    model: request.model,
    max_tokens: limit + (budget ?? 0),
    ...(system.length === 0 ? {} : { system: system.join("\n\n") }),
    messages: turnsOf(begin < 0 ? [] : request.messages.slice(begin)),
    ...(tools.length === 0 ? {} : { tools, tool_choice: choices[request.toolChoice] }),
    // JSON of a form is the arguments of a tool that has to be called.
    ...(format === undefined
      ? {}
      : {
          tools: [...tools, { name: format.name, input_schema: format.schema }],
          tool_choice: { type: "tool", name: format.name },
        }),
    // Who thinks takes neither.
    ...(request.temperature === null || budget !== null ? {} : { temperature: request.temperature }),
    ...(request.topP === null || budget !== null ? {} : { top_p: request.topP }),
    ...(request.stop.length === 0 ? {} : { stop_sequences: request.stop }),
    ...(budget === null ? {} : { thinking: { type: "enabled", budget_tokens: budget } }),
  }
}

const Answer = Schema.Struct({
  model: Schema.optionalKey(Schema.String),
  content: Schema.Array(
    Schema.Union([
      Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
      Schema.Struct({
        type: Schema.Literal("tool_use"),
        id: Schema.String,
        name: Schema.String,
        input: Schema.Unknown,
      }),
      // Thoughts, and what is yet to come.
      Schema.Struct({ type: Schema.String.check(Schema.isPattern(/^(?!text$|tool_use$)/)) }),
    ]),
  ),
  stop_reason: Schema.optionalKey(Schema.NullOr(Schema.String)),
  usage: Schema.optionalKey(
    Schema.Struct({
      input_tokens: Schema.optionalKey(Schema.NullOr(Schema.Int)),
      cache_creation_input_tokens: Schema.optionalKey(Schema.NullOr(Schema.Int)),
      cache_read_input_tokens: Schema.optionalKey(Schema.NullOr(Schema.Int)),
      output_tokens: Schema.optionalKey(Schema.NullOr(Schema.Int)),
    }),
  ),
})
const Failed = Schema.Struct({ type: Schema.Literal("error"), error: Schema.Unknown })
const isFailed = Schema.is(Failed)

const finishReasons: Readonly<Record<string, FinishReason>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  tool_use: "tool_calls",
  refusal: "content_filter",
}

const completionOf = (request: LmRequest, answer: typeof Answer.Type, format: JsonFormat | undefined): Completion => {
  let content = ""
  let form: string | undefined
  const toolCalls: Array<Completion["toolCalls"][number]> = []
  for (const block of answer.content) {
    if ("text" in block) content += block.text
    else if ("input" in block) {
      const said = JSON.stringify(block.input ?? {})
      if (block.name === format?.name) form = said
      else toolCalls.push({ id: block.id, name: block.name, arguments: said })
    }
  }
  const finish = finishReasons[answer.stop_reason ?? ""] ?? "unknown"
  const { usage = {} } = answer
  return {
    content: form ?? content,
    toolCalls,
    finishReason: finish === "tool_calls" && form !== undefined && toolCalls.length === 0 ? "stop" : finish,
    usage: {
      inputTokens:
        (usage.input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0) + (usage.cache_read_input_tokens ?? 0),
      outputTokens: usage.output_tokens ?? 0,
      // Counted with the output, and not told apart.
      reasoningTokens: 0,
    },
    tokens: null,
    model: answer.model ?? request.model,
    attempts: 1,
  }
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
  const readAnswer = read(server, Schema.Union([Failed, Answer]))
  return {
    model,
    complete: (request, format) =>
      whole(server, "messages", requestBody(request, thinkingBudget, format)).pipe(
        Effect.flatMap(readAnswer),
        Effect.flatMap((answer) =>
          isFailed(answer)
            ? Effect.fail(refusedInBody(server, answer))
            : Effect.succeed(completionOf(request, answer, format)),
        ),
      ),
  }
})

/** The same as Effect's own service. */
export const layer = (options: Options): Layer.Layer<LanguageModel.LanguageModel, LmError, HttpClient.HttpClient> =>
  Layer.effect(LanguageModel.LanguageModel, Effect.flatMap(make(options), makeLanguageModel))
