/** Decodes requests and encodes answers of Anthropic's messages, `POST /v1/messages`. */
import { Effect, Schema } from "effect"
import { isPlain, type Plain } from "../../../base/config/plain.ts"
import { parsedJson } from "../../../base/text/text.ts"
import type { ChatMessage, Completion, FinishReason, ToolCall, ToolSpec } from "../../lm/Chat.ts"
import type { GatewayError } from "../GatewayError.ts"
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

/** A part of a message. Its other keys depend on the type. */
const Block = Schema.Struct({
  type: Schema.String,
  text: maybe(Schema.String),
  id: maybe(Schema.String),
  name: maybe(Schema.String),
  input: maybe(Schema.Unknown),
  tool_use_id: maybe(Schema.String),
  is_error: maybe(Schema.Boolean),
  content: maybe(Schema.Unknown),
})
type Block = typeof Block.Type

const Content = Schema.Union([Schema.String, Schema.Array(Block)])

const Message = Schema.Struct({ role: Schema.Literals(["user", "assistant"]), content: Content })

const Tool = Schema.Struct({
  type: maybe(Schema.String),
  name: Schema.NonEmptyString,
  description: maybe(Schema.String),
  input_schema: maybe(Schema.Record(Schema.String, Schema.Unknown)),
})

const Body = Schema.Struct({
  model: maybe(Schema.String),
  max_tokens: Schema.Int,
  system: maybe(Content),
  messages: Schema.NonEmptyArray(Message),
  tools: maybe(Schema.Array(Tool)),
  tool_choice: maybe(
    Schema.Struct({ type: Schema.Literals(["auto", "any", "tool", "none"]), name: maybe(Schema.String) }),
  ),
  temperature: maybe(Schema.Finite),
  top_p: maybe(Schema.Finite),
  stop_sequences: maybe(Schema.Array(Schema.String)),
  stream: maybe(Schema.Boolean),
})
type Body = typeof Body.Type

/** Settings that would change the answer, with the values that have no effect. */
const unmodelled: Readonly<Record<string, (value: unknown) => boolean>> = {
  thinking: (value) => isPlain(value) && value["type"] === "disabled",
  top_k: () => false,
  mcp_servers: (value) => Array.isArray(value) && value.length === 0,
  container: () => false,
  output_config: () => false,
}

const isBlocks = Schema.is(Schema.Array(Block))

/** Thoughts of earlier answers, which only their own server can use. */
const isThought = ({ type }: Block): boolean => type === "thinking" || type === "redacted_thinking"

/** Decodes the messages of a request. Parts that are no texts leave a mark in the text, and are added to `others`. */
class MessageReader {
  readonly others: Array<string> = []
  private readonly messages: Array<ChatMessage> = []
  private readonly tools = calledTools()

  textOf(content: typeof Content.Type, place: string): string {
    if (typeof content === "string") return content
    const texts = content.filter((block) => !isThought(block)).map((block) => this.partOf(block, place))
    return texts.join("\n")
  }

  private partOf({ type, text }: Block, place: string): string {
    if (type === "text" && typeof text === "string") return text
    this.others.push(`${place} of type ${type}`)
    return `[${type}]`
  }

  add(role: "user" | "assistant", content: typeof Content.Type, place: string): void {
    if (typeof content === "string") this.messages.push({ role, content })
    else if (role === "assistant") this.addAnswer(content, place)
    else this.addInput(content, place)
  }

  private addAnswer(blocks: ReadonlyArray<Block>, place: string): void {
    const toolCalls = blocks.flatMap(({ type, id, name, input }): ReadonlyArray<ToolCall> => {
      if (type !== "tool_use") return []
      this.tools.add(id ?? "", name ?? "")
      return [{ id: id ?? "", name: name ?? "", arguments: JSON.stringify(input ?? {}) }]
    })
    const content = this.textOf(
      blocks.filter(({ type }) => type !== "tool_use"),
      place,
    )
    this.messages.push(
      toolCalls.length === 0 ? { role: "assistant", content } : { role: "assistant", content, toolCalls },
    )
  }

  /** Adds the results of tools, and the texts between them, as messages. */
  private addInput(blocks: ReadonlyArray<Block>, place: string): void {
    let texts: Array<Block> = []
    const addTexts = (): void => {
      if (texts.length > 0) this.messages.push({ role: "user", content: this.textOf(texts, place) })
      texts = []
    }
    for (const block of blocks) {
      if (block.type !== "tool_result") {
        texts.push(block)
        continue
      }
      addTexts()
      const { content, tool_use_id, is_error } = block
      const toolCallId = tool_use_id ?? ""
      const text = typeof content === "string" || isBlocks(content) ? this.textOf(content, place) : ""
      const toolName = this.tools.of(toolCallId)
      this.messages.push({
        role: "tool",
        toolCallId,
        toolName,
        content: text,
        ...(is_error === true ? { isError: true } : {}),
      })
    }
    addTexts()
  }

  all(): ReadonlyArray<ChatMessage> {
    return this.messages
  }
}

const toolsOf = ({ tools }: Body, others: Array<string>): ReadonlyArray<ToolSpec> =>
  (tools ?? []).flatMap(({ type, name, description, input_schema }, index) => {
    if (type !== undefined && type !== null && type !== "custom") {
      others.push(`tools[${index}] of type ${type}`)
      return []
    }
    return [{ name, description: description ?? "", parameters: input_schema ?? { type: "object", properties: {} } }]
  })

const choices = { auto: "auto", any: "required", tool: "required", none: "none" } as const

const decodeBody = decoder(Body, { messages: Message, tools: Tool })

const decode = Effect.fnUntraced(function* (raw: Plain) {
  const body = yield* decodeBody(raw)
  const reader = new MessageReader()
  const system = body.system === null || body.system === undefined ? "" : reader.textOf(body.system, "system")
  for (const [index, { role, content }] of body.messages.entries()) {
    reader.add(role, content, `messages[${index}].content`)
  }
  const others = [...unmodelledKeys(raw, unmodelled), ...reader.others]
  const tools = toolsOf(body, others)
  const choice = body.tool_choice ?? null
  const request: ClientRequest = {
    model: body.model ?? "",
    messages: [...(system === "" ? [] : [{ role: "system" as const, content: system }]), ...reader.all()],
    settings: settingsOf({
      tools:
        tools.length === 0 ? undefined : onlyTool(tools, choice?.type === "tool" ? (choice.name ?? "") : undefined),
      toolChoice: choice === null ? undefined : choices[choice.type],
      temperature: body.temperature,
      topP: body.top_p,
      maxOutputTokens: body.max_tokens,
      stop: body.stop_sequences,
    }),
    stream: body.stream === true,
    streamUsage: true,
    unmodelled: others,
  }
  return request
})

const finishReasons: Readonly<Record<FinishReason, string>> = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal",
  unknown: "end_turn",
}

/** Parses the arguments of a call. The protocol requires an object. */
const inputOf = (text: string): Plain => {
  const input = parsedJson(text)
  return isPlain(input) ? input : { arguments: text }
}

const messageOf = (
  { id }: AnswerFacts,
  { model, usage }: Completion,
  content: ReadonlyArray<object>,
  ended: object,
) => ({
  id: `msg_${id}`,
  type: "message",
  role: "assistant",
  model,
  content,
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens },
  ...ended,
})

const whole = (facts: AnswerFacts, completion: Completion): object => {
  const { content, toolCalls, finishReason } = completion
  const blocks = [
    ...(content === "" ? [] : [{ type: "text", text: content }]),
    ...toolCalls.map(({ id, name, arguments: text }) => ({ type: "tool_use", id, name, input: inputOf(text) })),
  ]
  return messageOf(facts, completion, blocks, { stop_reason: finishReasons[finishReason] })
}

const events = (facts: AnswerFacts, completion: Completion): string => {
  const { content, toolCalls, finishReason, usage } = completion
  const named = (type: string, more: object = {}): string => event({ type, ...more }, type)
  const block = (index: number, content_block: object, delta: object): string =>
    named("content_block_start", { index, content_block }) +
    named("content_block_delta", { index, delta }) +
    named("content_block_stop", { index })
  const texts = content === "" ? [] : [block(0, { type: "text", text: "" }, { type: "text_delta", text: content })]
  return [
    named("message_start", { message: messageOf(facts, completion, [], {}) }),
    ...texts,
    ...toolCalls.map(({ id, name, arguments: text }, at) => {
      const begun = { type: "tool_use", id, name, input: {} }
      const partial_json = JSON.stringify(inputOf(text))
      return block(texts.length + at, begun, { type: "input_json_delta", partial_json })
    }),
    named("message_delta", {
      delta: { stop_reason: finishReasons[finishReason], stop_sequence: null },
      usage: { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens },
    }),
    named("message_stop"),
  ].join("")
}

const errorTypes: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
}

const failure = ({ status, code, message }: GatewayError): object => ({
  type: "error",
  error: { type: errorTypes[status] ?? (status >= 500 ? "api_error" : "invalid_request_error"), message, code },
})

/** Anthropic's messages. */
export const messages: ClientProtocol = {
  decode,
  whole,
  events,
  failure,
  failureEvent: (error) => event(failure(error), "error"),
}
