/** Encodes requests and decodes answers of OpenAI's chat completions protocol, for `openAi.ts`. These are pure functions. */
import { Schema } from "effect"
import { withDefault } from "../../../base/config/fields.ts"
import { EncodedExperts } from "../../../base/formats/routedExperts.ts"
import {
  type ChatMessage,
  type Completion,
  type FinishReason,
  type LmRequest,
  noTokens,
  type ToolCall,
} from "../Chat.ts"
import type { AnswerForm } from "./wireProvider.ts"
import type { FailureBody } from "./http.ts"

/** The ways in which servers of this protocol differ. */
export interface Dialect {
  /** Whether the server accepts `return_token_ids`; some servers refuse unknown fields. */
  readonly tokenIds: boolean
  /** Fields that are added to every request. */
  readonly extra: Readonly<Record<string, unknown>>
}

/**
 * Tells whether a name belongs to OpenAI's reasoning models. They refuse a temperature, and use another field for the limit
 * of tokens.
 */
export const thinks = (model: string): boolean => {
  const lastChat = model.lastIndexOf("chat")
  // A look ahead for "chat" at each match would take a time that is quadratic in the length of a name.
  for (const { 1: name, index } of model.matchAll(/(?:^(?:ft:)?|\/)(o\d|gpt-5)/g))
    if (name !== "gpt-5" || lastChat < index) return true
  return false
}

const messageBody = (message: ChatMessage): Readonly<Record<string, unknown>> => {
  switch (message.role) {
    case "assistant":
      return message.toolCalls === undefined || message.toolCalls.length === 0
        ? { role: "assistant", content: message.content }
        : {
            role: "assistant",
            content: message.content === "" ? null : message.content,
            tool_calls: message.toolCalls.map(({ id, name, arguments: text }) => ({
              id,
              type: "function",
              function: { name, arguments: text },
            })),
          }
    case "tool":
      return { role: "tool", tool_call_id: message.toolCallId, content: message.content }
    default:
      return { role: message.role, content: message.content }
  }
}

/** Encodes a request; settings that are null are left out. */
export const requestBody = (
  request: LmRequest,
  { tokenIds, extra }: Dialect,
  { format, stream }: AnswerForm,
): Readonly<Record<string, unknown>> => ({
  model: request.model,
  messages: request.messages.map(messageBody),
  ...(request.tools.length === 0
    ? {}
    : {
        tools: request.tools.map(({ name, description, parameters }) => {
          return { type: "function", function: { name, description, parameters } }
        }),
        tool_choice: request.toolChoice,
      }),
  ...(request.temperature === null || thinks(request.model) ? {} : { temperature: request.temperature }),
  ...(request.topP === null || thinks(request.model) ? {} : { top_p: request.topP }),
  ...(request.maxOutputTokens === null
    ? {}
    : { [thinks(request.model) ? "max_completion_tokens" : "max_tokens"]: request.maxOutputTokens }),
  ...(request.stop.length === 0 ? {} : { stop: request.stop }),
  ...(request.seed === null ? {} : { seed: request.seed }),
  ...(request.traceTokens ? { logprobs: true, ...(tokenIds ? { return_token_ids: true } : {}) } : {}),
  ...(format === undefined
    ? {}
    : { response_format: { type: "json_schema", json_schema: { name: format.name, schema: format.schema } } }),
  ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
  ...extra,
})

/** A field that servers may leave out or set to null. */
const maybe = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const Ids = maybe(Schema.Array(Schema.Int))

const Message = Schema.Struct({
  role: maybe(Schema.String),
  content: maybe(
    Schema.Union([Schema.String, Schema.Array(Schema.Struct({ text: Schema.optionalKey(Schema.String) }))]),
  ),
  refusal: maybe(Schema.String),
  tool_calls: maybe(
    Schema.Array(
      Schema.Struct({
        index: maybe(Schema.Int),
        id: maybe(Schema.String),
        function: maybe(
          Schema.Struct({
            name: maybe(Schema.String),
            arguments: maybe(Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)])),
          }),
        ),
      }),
    ),
  ),
  prompt_token_ids: Ids,
  generation_token_ids: Ids,
})

const Choice = Schema.Struct({
  message: maybe(Message),
  delta: maybe(Message),
  finish_reason: maybe(Schema.String),
  logprobs: maybe(
    Schema.Struct({
      content: maybe(
        Schema.Array(
          Schema.Struct({
            logprob: maybe(Schema.Finite),
            id: maybe(Schema.Int),
            token: maybe(Schema.String),
            bytes: maybe(Schema.Array(Schema.Int)),
          }),
        ),
      ),
    }),
  ),
  token_ids: Ids,
  prompt_token_ids: Ids,
  /** The weights of the answer, from a server of this library. Other servers may use this key for something else. */
  weights: maybe(Schema.Unknown),
  /** The experts of the tokens, from a server that records them. */
  routed_experts: maybe(Schema.Unknown),
})

/** Experts of all tokens, from the first one on. */
const isExperts = Schema.is(Schema.Struct({ ...EncodedExperts.fields, start: maybe(Schema.Literal(0)) }))

const isWeights = Schema.is(Schema.Struct({ model: Schema.String, step: Schema.Int }))

const Counts = Schema.Struct({
  prompt_tokens: maybe(Schema.Int),
  completion_tokens: maybe(Schema.Int),
  completion_tokens_details: maybe(Schema.Struct({ reasoning_tokens: maybe(Schema.Int) })),
})

const shared = { model: maybe(Schema.String), usage: maybe(Counts), prompt_token_ids: Ids }

/** An error in the body of a response with status 200, which some gateways send. */
const Failed = Schema.Struct({ error: Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]) })
const isFailed = Schema.is(Failed)

const WholeChoice = Schema.Struct({ ...Choice.fields, message: Message })

/** A whole answer; the list of choices must not be empty. */
export const Whole = Schema.Union([Failed, Schema.Struct({ ...shared, choices: Schema.NonEmptyArray(WholeChoice) })])

/** A piece of a streamed answer. The piece with the usage has an empty list of choices, or none. */
export const AnswerPiece = Schema.Union([
  Failed,
  Schema.Struct({ ...shared, choices: Schema.Array(Choice) }),
  Schema.Struct({ ...shared, usage: Counts, choices: withDefault(Schema.Array(Choice), []) }),
])
export type AnswerPiece = Exclude<typeof AnswerPiece.Type, typeof Failed.Type>

const finishReasons: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool_calls",
  function_call: "tool_calls",
  content_filter: "content_filter",
}

/** Collects an answer, which arrives whole or in pieces. */
export class OpenAiAnswer {
  content = ""
  /** Whether the answer has a text part, even an empty one. */
  hasContent = false
  /** The reason for which the model declined to answer; empty if it did not decline. */
  refusal = ""
  readonly calls: Array<{ readonly index: number | null; readonly id: string; name: string; arguments: string }> = []
  /** The reason why the answer ended, as the server names it. */
  finish: string | null = null
  /** Whether the event that ends the stream has arrived. */
  ended = false
  model: string | null = null
  usage: Completion["usage"] | null = null
  promptIds: ReadonlyArray<number> | null = null
  readonly ids: Array<number> = []
  readonly logprobs: Array<number | null> = []
  /** The token ids from the list of log-probabilities; only llama.cpp sends them there. */
  readonly logprobIds: Array<number> = []
  /** The text of each token in the list of log-probabilities; null for a token without a text. */
  readonly texts: Array<string | null> = []
  weights: NonNullable<NonNullable<Completion["tokens"]>["weights"]> | null = null
  experts: EncodedExperts | null = null
  /** Decodes UTF-8 in which a character may span several tokens. */
  readonly decoder = new TextDecoder()
}

const textOf = ({ content }: typeof Message.Type): string =>
  typeof content === "string" ? content : (content ?? []).map(({ text }) => text ?? "").join("")

/** Adds tool calls to `into`: whole ones, or pieces of a stream, which continue a call or begin a new one. */
const gatherCalls = (
  into: OpenAiAnswer,
  calls: NonNullable<(typeof Message.Type)["tool_calls"]>,
  whole: boolean,
): void => {
  for (const { index, id, function: called } of calls) {
    const openCall = typeof index === "number" ? into.calls.findLast((call) => call.index === index) : into.calls.at(-1)
    // Gemini gives all calls the index 0, but different ids.
    const isNew = whole || openCall === undefined || (Boolean(id) && id !== openCall.id)
    const call = isNew ? { index: index ?? null, id: id ?? "", name: "", arguments: "" } : openCall
    if (isNew) into.calls.push(call)
    call.name ||= called?.name ?? ""
    const piece = called?.arguments ?? ""
    call.arguments += typeof piece === "string" ? piece : JSON.stringify(piece)
  }
}

/** Adds a whole answer, or a piece of one, to `into`. Returns its text, or the failure that the server reports instead. */
export const gather = (into: OpenAiAnswer, piece: typeof AnswerPiece.Type): string | FailureBody => {
  if (isFailed(piece)) return piece
  into.model ??= piece.model ?? null
  into.promptIds ??= piece.prompt_token_ids ?? null
  if (piece.usage !== null && piece.usage !== undefined) {
    const { prompt_tokens, completion_tokens, completion_tokens_details } = piece.usage
    into.usage = {
      inputTokens: prompt_tokens ?? 0,
      outputTokens: completion_tokens ?? 0,
      reasoningTokens: completion_tokens_details?.reasoning_tokens ?? 0,
    }
  }
  const choice = piece.choices.at(0)
  if (choice === undefined) return ""
  const message = choice.message ?? choice.delta ?? {}
  const text = textOf(message)
  into.content += text
  into.hasContent ||= message.content !== null && message.content !== undefined
  into.refusal += message.refusal ?? ""
  gatherCalls(into, message.tool_calls ?? [], choice.delta === null || choice.delta === undefined)
  into.finish ??= choice.finish_reason ?? null
  into.promptIds ??= choice.prompt_token_ids ?? message.prompt_token_ids ?? null
  if (isWeights(choice.weights)) into.weights = { model: choice.weights.model, step: choice.weights.step }
  if (isExperts(choice.routed_experts)) into.experts = expertsIn(choice.routed_experts)
  for (const id of choice.token_ids ?? message.generation_token_ids ?? []) into.ids.push(id)
  for (const { logprob, id, token, bytes } of choice.logprobs?.content ?? []) {
    into.logprobs.push(logprob ?? null)
    const text = bytes === null || bytes === undefined ? token : into.decoder.decode(Uint8Array.from(bytes), streamed)
    into.texts.push(text ?? null)
    if (id !== null && id !== undefined) into.logprobIds.push(id)
  }
  return text
}

const expertsIn = ({ data, shape, dtype }: EncodedExperts): EncodedExperts => ({ data, shape, dtype })

/** The option that makes a `TextDecoder` keep the bytes of an incomplete character until the next token. */
const streamed = { stream: true }

/** Returns the token trace of an answer; null if the server sent none, or an incomplete one. */
const tokensOf = (from: OpenAiAnswer): Completion["tokens"] => {
  const completionIds = completionIdsOf(from)
  if (from.promptIds === null || completionIds.length === 0) return null
  const logprobs = from.logprobs.filter((logprob) => logprob !== null)
  const texts = from.texts.filter((text) => text !== null)
  return {
    promptIds: from.promptIds,
    completionIds,
    logprobs: logprobs.length === completionIds.length ? logprobs : null,
    ...(texts.length === completionIds.length ? { texts } : {}),
    ...(from.weights === null ? {} : { weights: from.weights }),
    ...(from.experts === null ? {} : { routedExperts: from.experts }),
  }
}

/** Returns the token ids of an answer; an empty list if the server did not send one for every token. */
export const completionIdsOf = ({ ids, logprobs, logprobIds }: OpenAiAnswer): ReadonlyArray<number> =>
  ids.length > 0 ? ids : logprobIds.length === logprobs.length ? logprobIds : []

/** Makes the completion of a request from its collected answer. */
export const completionOf = (request: LmRequest, from: OpenAiAnswer): Completion => {
  const toolCalls = from.calls.map((call, at): ToolCall => ({
    // Some servers send no id. Make one that no other turn has, so that the result of a tool can be assigned to its call.
    id: call.id === "" ? `call_${request.messages.length}_${at}` : call.id,
    name: call.name,
    arguments: call.arguments === "" ? "{}" : call.arguments,
  }))
  const finish = finishReasons[from.finish ?? ""] ?? "unknown"
  return {
    content: from.content,
    toolCalls,
    // Some servers report "stop" for an answer that has tool calls.
    finishReason: finish === "stop" && toolCalls.length > 0 ? "tool_calls" : finish,
    usage: from.usage ?? noTokens,
    tokens: request.traceTokens ? tokensOf(from) : null,
    model: from.model ?? request.model,
    attempts: 1,
  }
}
