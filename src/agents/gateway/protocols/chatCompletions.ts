/** Decodes requests and encodes answers of OpenAI's chat completions, `POST /v1/chat/completions`. */
import { Effect, Schema } from "effect"
import { isPlain, type Plain } from "../../../base/config/plain.ts"
import type { ChatMessage, Completion, FinishReason, ToolSpec } from "../../lm/Chat.ts"
import { badRequest } from "../GatewayError.ts"
import {
  type AnswerFacts,
  calledTools,
  type ClientProtocol,
  type ClientRequest,
  decoder,
  event,
  maybe,
  onlyTool,
  settingsOf,
  unmodelledKeys,
} from "./ClientProtocol.ts"
import { openAiFailure, openAiFailureEvent } from "./openAiFailure.ts"

const ToolCall = Schema.Struct({
  id: maybe(Schema.String),
  type: maybe(Schema.String),
  function: maybe(
    Schema.Struct({
      name: Schema.String,
      arguments: maybe(Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)])),
    }),
  ),
})

const Message = Schema.Struct({
  role: Schema.Literals(["system", "developer", "user", "assistant", "tool"]),
  content: maybe(
    Schema.Union([Schema.String, Schema.Array(Schema.Struct({ type: Schema.String, text: maybe(Schema.String) }))]),
  ),
  refusal: maybe(Schema.String),
  tool_calls: maybe(Schema.Array(ToolCall)),
  tool_call_id: maybe(Schema.String),
})
type Message = typeof Message.Type

const Tool = Schema.Struct({
  type: Schema.String,
  function: maybe(
    Schema.Struct({
      name: Schema.NonEmptyString,
      description: maybe(Schema.String),
      parameters: maybe(Schema.Record(Schema.String, Schema.Unknown)),
    }),
  ),
})

const Body = Schema.Struct({
  model: maybe(Schema.String),
  messages: Schema.NonEmptyArray(Message),
  tools: maybe(Schema.Array(Tool)),
  tool_choice: maybe(
    Schema.Union([
      Schema.Literals(["none", "auto", "required"]),
      Schema.Struct({ type: Schema.String, function: maybe(Schema.Struct({ name: Schema.String })) }),
    ]),
  ),
  temperature: maybe(Schema.Finite),
  top_p: maybe(Schema.Finite),
  max_tokens: maybe(Schema.Int),
  max_completion_tokens: maybe(Schema.Int),
  stop: maybe(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  seed: maybe(Schema.Int),
  n: maybe(Schema.Int),
  stream: maybe(Schema.Boolean),
  stream_options: maybe(Schema.Struct({ include_usage: maybe(Schema.Boolean) })),
})

const is =
  (...values: ReadonlyArray<unknown>) =>
  (value: unknown): boolean =>
    values.includes(value)

/** Settings that would change the answer, with the values that have no effect. */
const unmodelled: Readonly<Record<string, (value: unknown) => boolean>> = {
  response_format: (value) => isPlain(value) && value["type"] === "text",
  frequency_penalty: is(0),
  presence_penalty: is(0),
  logit_bias: (value) => isPlain(value) && Object.keys(value).length === 0,
  logprobs: is(false),
  parallel_tool_calls: is(true),
  functions: is(),
  function_call: is("auto", "none"),
  reasoning_effort: is(),
  modalities: (value) => Array.isArray(value) && value.every((mode) => mode === "text"),
  audio: is(),
  web_search_options: is(),
}

/** Returns the text of a message. Parts that are no texts leave a mark in it, and are added to `others`. */
const textOf = ({ content, refusal }: Message, place: string, others: Array<string>): string => {
  if (typeof content === "string") return content
  if (content === null || content === undefined) return refusal ?? ""
  const texts = content.map(({ type, text }, index) => {
    if (typeof text === "string" && type === "text") return text
    others.push(`${place}.content[${index}] of type ${type}`)
    return `[${type}]`
  })
  return texts.join("\n")
}

const messagesOf = (messages: ReadonlyArray<Message>, others: Array<string>): ReadonlyArray<ChatMessage> => {
  const tools = calledTools()
  return messages.map((message, index): ChatMessage => {
    const content = textOf(message, `messages[${index}]`, others)
    if (message.role === "tool") {
      const toolCallId = message.tool_call_id ?? ""
      return { role: "tool", toolCallId, toolName: tools.of(toolCallId), content }
    }
    if (message.role !== "assistant") return { role: message.role === "developer" ? "system" : message.role, content }
    const toolCalls = (message.tool_calls ?? []).flatMap(({ id, function: called }, at) => {
      if (called === null || called === undefined) {
        others.push(`messages[${index}].tool_calls[${at}], which calls no function`)
        return []
      }
      const text = called.arguments ?? ""
      tools.add(id ?? "", called.name)
      return [{ id: id ?? "", name: called.name, arguments: typeof text === "string" ? text : JSON.stringify(text) }]
    })
    return toolCalls.length === 0 ? { role: "assistant", content } : { role: "assistant", content, toolCalls }
  })
}

const toolsOf = (tools: ReadonlyArray<typeof Tool.Type>, others: Array<string>): ReadonlyArray<ToolSpec> =>
  tools.flatMap(({ type, function: one }, index) => {
    if (one === null || one === undefined) {
      others.push(`tools[${index}] of type ${type}`)
      return []
    }
    return [
      {
        name: one.name,
        description: one.description ?? "",
        parameters: one.parameters ?? { type: "object", properties: {} },
      },
    ]
  })

/** The largest number of answers to a request. Each is a request to the server. */
const mostChoices = 64

const decodeBody = decoder(Body, { messages: Message, tools: Tool })

const decode = Effect.fnUntraced(function* (raw: Plain) {
  const body = yield* decodeBody(raw)
  const choices = body.n ?? 1
  if (choices < 1 || choices > mostChoices)
    return yield* badRequest(`n: expected a number from 1 to ${mostChoices}, found ${choices}`)
  const others = [...unmodelledKeys(raw, unmodelled)]
  const { tool_choice: choice, stop } = body
  const tools = toolsOf(body.tools ?? [], others)
  const named = typeof choice === "object" ? choice?.function?.name : undefined
  const request: ClientRequest = {
    model: body.model ?? "",
    messages: messagesOf(body.messages, others),
    settings: settingsOf({
      tools: body.tools === undefined || body.tools === null ? undefined : onlyTool(tools, named),
      toolChoice: typeof choice === "object" && choice !== null ? "required" : choice,
      temperature: body.temperature,
      topP: body.top_p,
      maxOutputTokens: body.max_completion_tokens ?? body.max_tokens,
      stop: typeof stop === "string" ? [stop] : stop,
      seed: body.seed,
    }),
    stream: body.stream === true,
    choices,
    streamUsage: body.stream_options?.include_usage === true,
    unmodelled: others,
  }
  return request
})

const finishReasons: Readonly<Record<FinishReason, string>> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool_calls",
  content_filter: "content_filter",
  unknown: "stop",
}

const usageOf = ({ usage: { inputTokens, outputTokens, reasoningTokens } }: Completion) => ({
  prompt_tokens: inputTokens,
  completion_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
  completion_tokens_details: { reasoning_tokens: reasoningTokens },
})

const callsOf = ({ toolCalls }: Completion) =>
  toolCalls.map(({ id, name, arguments: text }) => ({ id, type: "function", function: { name, arguments: text } }))

const whole = ({ id, created }: AnswerFacts, completion: Completion): object => {
  const calls = callsOf(completion)
  const content = completion.content === "" && calls.length > 0 ? null : completion.content
  const message = { role: "assistant", content, refusal: null, ...(calls.length === 0 ? {} : { tool_calls: calls }) }
  return {
    id: `chatcmpl-${id}`,
    object: "chat.completion",
    created,
    model: completion.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReasons[completion.finishReason] }],
    usage: usageOf(completion),
  }
}

const events = ({ id, created, streamUsage }: AnswerFacts, completion: Completion): string => {
  const chunk = (choices: ReadonlyArray<object>, more: object = streamUsage ? { usage: null } : {}): string =>
    event({ id: `chatcmpl-${id}`, object: "chat.completion.chunk", created, model: completion.model, choices, ...more })
  const piece = (delta: object, finish_reason: string | null = null): string =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason }])
  return [
    piece({ role: "assistant", content: "" }),
    ...(completion.content === "" ? [] : [piece({ content: completion.content })]),
    ...callsOf(completion).map((call, index) => piece({ tool_calls: [{ index, ...call }] })),
    piece({}, finishReasons[completion.finishReason]),
    ...(streamUsage ? [chunk([], { usage: usageOf(completion) })] : []),
    event("[DONE]"),
  ].join("")
}

/** OpenAI's chat completions. */
export const chatCompletions: ClientProtocol = {
  decode,
  whole,
  events,
  failure: openAiFailure,
  failureEvent: openAiFailureEvent,
}
