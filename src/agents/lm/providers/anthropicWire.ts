/** Encodes requests and decodes answers of Anthropic's messages protocol, for `anthropic.ts`. These are pure functions. */
import { Schema } from "effect"
import { isPlain, type Plain } from "../../../base/config/Config.ts"
import type { ChatMessage, Completion, FinishReason, LmRequest } from "../Chat.ts"
import { jsonOrText } from "./languageModel.ts"
import type { AnswerForm } from "./wireProvider.ts"
import type { FailureBody } from "./http.ts"
import type { JsonFormat } from "./Provider.ts"

/** The limit of output tokens for requests without one, since the protocol requires a limit. */
const defaultMaxTokens = 4096

type ContentBlock = Readonly<Record<string, unknown>>
interface AnthropicTurn {
  readonly role: "user" | "assistant"
  readonly content: Array<ContentBlock>
}

/** Parses the arguments of a tool call. The protocol requires an object, so any other text becomes `{ arguments: text }`. */
const inputOf = (text: string): Plain => {
  const input = jsonOrText(text)
  return isPlain(input) ? input : { arguments: text }
}

const blocksOf = (message: ChatMessage): ReadonlyArray<ContentBlock> => {
  // The server refuses empty texts.
  const text = message.content === "" ? [] : [{ type: "text", text: message.content }]
  if (message.role === "assistant") {
    const calls = message.toolCalls ?? []
    return [
      ...text,
      ...calls.map(({ id, name, arguments: text }) => ({ type: "tool_use", id, name, input: inputOf(text) })),
    ]
  }
  if (message.role !== "tool") return text
  const { toolCallId, content, isError } = message
  return [{ type: "tool_result", tool_use_id: toolCallId, content, ...(isError === true ? { is_error: true } : {}) }]
}

/** Joins messages into turns that alternate between user and assistant. Results of tools belong to the user's turn. */
const turnsOf = (messages: ReadonlyArray<ChatMessage>): ReadonlyArray<AnthropicTurn> => {
  const turns: Array<AnthropicTurn> = []
  for (const message of messages) {
    const content = blocksOf(message)
    const role = message.role === "assistant" ? "assistant" : "user"
    const last = turns.at(-1)
    if (last?.role === role) for (const block of content) last.content.push(block)
    else if (content.length > 0) turns.push({ role, content: [...content] })
  }
  return turns
}

const choices = { auto: { type: "auto" }, none: { type: "none" }, required: { type: "any" } } as const

/** Encodes a request; settings that are null are left out. */
export const requestBody = (
  request: LmRequest,
  thinkingBudget: number | null,
  { format, stream }: AnswerForm,
): Readonly<Record<string, unknown>> => {
  const begin = request.messages.findIndex(({ role }) => role !== "system")
  const system = request.messages.slice(0, begin < 0 ? undefined : begin).map(({ content }) => content)
  // Turn thinking off after a tool's result, because the server would require the earlier thoughts, which we do not keep.
  // Also turn it off for a `format`, because a thinking model must not be forced to call a tool (see `tool_choice` below).
  const budget = request.messages.at(-1)?.role === "tool" || format !== undefined ? null : thinkingBudget
  const tools = request.tools.map(({ name, description, parameters }) => {
    return { name, description, input_schema: parameters }
  })
  const limit = request.maxOutputTokens ?? defaultMaxTokens
  return {
    model: request.model,
    max_tokens: limit + (budget ?? 0),
    ...(system.length === 0 ? {} : { system: system.join("\n\n") }),
    messages: turnsOf(begin < 0 ? [] : request.messages.slice(begin)),
    ...(tools.length === 0 ? {} : { tools, tool_choice: choices[request.toolChoice] }),
    // The protocol has no JSON mode, so require the call of a tool whose arguments are the answer.
    ...(format === undefined
      ? {}
      : {
          tools: [...tools, { name: format.name, input_schema: format.schema }],
          tool_choice: { type: "tool", name: format.name },
        }),
    // The server refuses the next two settings if thinking is on.
    ...(request.temperature === null || budget !== null ? {} : { temperature: request.temperature }),
    ...(request.topP === null || budget !== null ? {} : { top_p: request.topP }),
    ...(request.stop.length === 0 ? {} : { stop_sequences: request.stop }),
    ...(budget === null ? {} : { thinking: { type: "enabled", budget_tokens: budget } }),
    ...(stream ? { stream: true } : {}),
  }
}

/**
 * Returns the body of another program for the server, which is unchanged except for the model's name, and a temperature that
 * the program left out. A temperature is refused if the model thinks.
 */
export const passedBody = (body: Plain, { model, temperature }: LmRequest): Plain => ({
  ...(temperature === null || isPlain(body["thinking"]) ? {} : { temperature }),
  ...body,
  model,
})

const count = Schema.optionalKey(Schema.NullOr(Schema.Int))
const Counted = Schema.Struct({
  input_tokens: count,
  cache_creation_input_tokens: count,
  cache_read_input_tokens: count,
  output_tokens: count,
})
/**
 * Makes the Schema of parts and events of all types except `types`, e.g. thoughts, so that types which the protocol adds
 * later cause no error.
 */
const otherThan = (...types: ReadonlyArray<string>) =>
  Schema.Struct({ type: Schema.String.check(Schema.makeFilter((type) => !types.includes(type))) })

const Part = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("tool_use"), id: Schema.String, name: Schema.String, input: Schema.Unknown }),
  otherThan("text", "tool_use"),
])
const Message = Schema.Struct({
  model: Schema.optionalKey(Schema.String),
  content: Schema.Array(Part),
  stop_reason: Schema.optionalKey(Schema.NullOr(Schema.String)),
  usage: Schema.optionalKey(Counted),
})

/** An error that the server reports instead of an answer, or within one. */
const Failed = Schema.Struct({ type: Schema.Literal("error"), error: Schema.Unknown })
const isFailed = Schema.is(Failed)

export const Whole = Schema.Union([Failed, Message])

export const Piece = Schema.Union([
  Failed,
  Schema.Struct({ type: Schema.Literal("message_start"), message: Message }),
  Schema.Struct({ type: Schema.Literal("content_block_start"), content_block: Part }),
  Schema.Struct({
    type: Schema.Literal("content_block_delta"),
    delta: Schema.Union([
      Schema.Struct({ type: Schema.Literal("text_delta"), text: Schema.String }),
      Schema.Struct({ type: Schema.Literal("input_json_delta"), partial_json: Schema.String }),
      otherThan("text_delta", "input_json_delta"),
    ]),
  }),
  Schema.Struct({
    type: Schema.Literal("message_delta"),
    delta: Schema.Struct({ stop_reason: Schema.optionalKey(Schema.NullOr(Schema.String)) }),
    usage: Schema.optionalKey(Counted),
  }),
  otherThan("error", "message_start", "content_block_start", "content_block_delta", "message_delta"),
])

/** Collects an answer, which arrives whole or in pieces. */
export class AnthropicAnswer {
  content = ""
  /** Whether the answer has a text part, even an empty one. */
  hasContent = false
  readonly calls: Array<{ readonly id: string; readonly name: string; arguments: string }> = []
  /** The reason why the answer ended, as the server names it. */
  finish: string | null = null
  model: string | null = null
  usage: typeof Counted.Type = {}
  /** Whether the event that ends the stream has arrived. */
  ended = false
}

const gatherPart = (into: AnthropicAnswer, part: typeof Part.Type, whole: boolean): string => {
  if ("text" in part) {
    into.hasContent = true
    into.content += part.text
    return part.text
  }
  if ("input" in part) {
    const { id, name, input } = part
    // In a stream, the arguments follow in later pieces, and `input` is an empty object.
    into.calls.push({ id, name, arguments: whole ? JSON.stringify(input ?? {}) : "" })
  }
  return ""
}

/** Adds a whole answer to `into`. Returns the answer's text, or the failure that the server reports instead. */
export const gatherWhole = (into: AnthropicAnswer, message: typeof Whole.Type): string | FailureBody => {
  if (isFailed(message)) return message
  for (const part of message.content) gatherPart(into, part, true)
  into.finish = message.stop_reason ?? null
  into.model = message.model ?? null
  into.usage = message.usage ?? {}
  return into.content
}

/** Adds a piece of a stream to `into`. Returns the text in it, or the failure that the server reports instead. */
export const gather = (into: AnthropicAnswer, piece: typeof Piece.Type): string | FailureBody => {
  if (isFailed(piece)) return piece
  if ("message" in piece) {
    into.model = piece.message.model ?? null
    into.usage = piece.message.usage ?? {}
  } else if ("content_block" in piece) return gatherPart(into, piece.content_block, false)
  else if ("delta" in piece) {
    const { delta } = piece
    if ("text" in delta) {
      into.content += delta.text
      return delta.text
    }
    const call = into.calls.at(-1)
    if ("partial_json" in delta && call !== undefined) call.arguments += delta.partial_json
    if ("stop_reason" in delta) into.finish = delta.stop_reason ?? null
    // A later report of token counts has only some of them, so keep the others.
    if ("usage" in piece) {
      const counts = Object.entries(piece.usage ?? {}).filter(([, count]) => count !== null)
      into.usage = { ...into.usage, ...Object.fromEntries(counts) }
    }
  } else if (piece.type === "message_stop") into.ended = true
  return ""
}

const finishReasons: Readonly<Record<string, FinishReason>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  tool_use: "tool_calls",
  refusal: "content_filter",
}

/** Makes the completion of a request from its collected answer. */
export const completionOf = (request: LmRequest, from: AnthropicAnswer, format?: JsonFormat): Completion => {
  const calls = from.calls.map((call) => ({ ...call, arguments: call.arguments || "{}" }))
  const jsonAnswer = format === undefined ? undefined : calls.find(({ name }) => name === format.name)
  const toolCalls = calls.filter((call) => call !== jsonAnswer)
  const finish = finishReasons[from.finish ?? ""] ?? "unknown"
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } = from.usage
  return {
    content: jsonAnswer?.arguments ?? from.content,
    toolCalls,
    finishReason: finish === "tool_calls" && toolCalls.length === 0 ? "stop" : finish,
    usage: {
      inputTokens: (input_tokens ?? 0) + (cache_creation_input_tokens ?? 0) + (cache_read_input_tokens ?? 0),
      outputTokens: output_tokens ?? 0,
      // The server includes the tokens of thoughts in the output tokens, and does not report them separately.
      reasoningTokens: 0,
    },
    tokens: null,
    model: from.model ?? request.model,
    attempts: 1,
  }
}
