/** Decodes requests and encodes answers of OpenAI's responses, `POST /v1/responses`. */
import { Effect, Schema } from "effect"
import { isPlain, type Plain } from "../../../base/config/plain.ts"
import type { ChatMessage, Completion, ToolCall, ToolSpec } from "../../lm/Chat.ts"
import { badRequest, type GatewayError, gatewayError } from "../GatewayError.ts"
import {
  type AnswerFacts,
  calledTools,
  type ClientProtocol,
  type ClientRequest,
  decoder,
  type EarlierAnswers,
  event,
  maybe,
  onlyTool,
  settingsOf,
  unmodelledKeys,
} from "./ClientProtocol.ts"
import { openAiFailure } from "./openAiFailure.ts"

const Part = Schema.Struct({ type: Schema.String, text: maybe(Schema.String), refusal: maybe(Schema.String) })
const Content = Schema.Union([Schema.String, Schema.Array(Part)])

/** An item of the input. Its other keys depend on the type; an item without a type is a message. */
const Item = Schema.Struct({
  type: maybe(Schema.String),
  role: maybe(Schema.Literals(["system", "developer", "user", "assistant"])),
  content: maybe(Content),
  call_id: maybe(Schema.String),
  name: maybe(Schema.String),
  arguments: maybe(Schema.String),
  output: maybe(Content),
})
type Item = typeof Item.Type

const Tool = Schema.Struct({
  type: Schema.String,
  name: maybe(Schema.String),
  description: maybe(Schema.String),
  parameters: maybe(Schema.Record(Schema.String, Schema.Unknown)),
})

const Body = Schema.Struct({
  model: maybe(Schema.String),
  input: Schema.Union([Schema.String, Schema.Array(Item)]),
  instructions: maybe(Schema.String),
  previous_response_id: maybe(Schema.String),
  tools: maybe(Schema.Array(Tool)),
  tool_choice: maybe(
    Schema.Union([
      Schema.Literals(["none", "auto", "required"]),
      Schema.Struct({ type: Schema.String, name: maybe(Schema.String) }),
    ]),
  ),
  temperature: maybe(Schema.Finite),
  top_p: maybe(Schema.Finite),
  max_output_tokens: maybe(Schema.Int),
  stream: maybe(Schema.Boolean),
  store: maybe(Schema.Boolean),
})
type Body = typeof Body.Type

/** Settings that would change the answer, with the values that have no effect. */
const unmodelled: Readonly<Record<string, (value: unknown) => boolean>> = {
  text: (value) => isPlain(value) && (value["format"] === undefined || isText(value["format"])),
  reasoning: (value) => isPlain(value) && Object.values(value).every((one) => one === null),
  background: (value) => value === false,
  truncation: (value) => value === "disabled",
  parallel_tool_calls: (value) => value === true,
  conversation: () => false,
  prompt: () => false,
  top_logprobs: (value) => value === 0,
}
const isText = (format: unknown): boolean => isPlain(format) && format["type"] === "text"

const textTypes = ["input_text", "output_text", "text"]

const textOf = (content: typeof Content.Type | null | undefined, place: string, others: Array<string>): string => {
  if (typeof content === "string") return content
  const texts = (content ?? []).map(({ type, text, refusal }) => {
    if (textTypes.includes(type) && typeof text === "string") return text
    if (type === "refusal") return refusal ?? ""
    others.push(`${place} of type ${type}`)
    return `[${type}]`
  })
  return texts.join("\n")
}

/** Adds the call of a function to the answer before it, of which it is a part. */
const addCall = (messages: Array<ChatMessage>, call: ToolCall): void => {
  const last = messages.at(-1)
  if (last?.role === "assistant") {
    messages[messages.length - 1] = { ...last, toolCalls: [...(last.toolCalls ?? []), call] }
  } else messages.push({ role: "assistant", content: "", toolCalls: [call] })
}

const messagesOf = (input: Body["input"], others: Array<string>): ReadonlyArray<ChatMessage> => {
  if (typeof input === "string") return [{ role: "user", content: input }]
  const tools = calledTools()
  const messages: Array<ChatMessage> = []
  for (const [index, item] of input.entries()) addItem(messages, item, { place: `input[${index}]`, tools, others })
  return messages
}

interface ItemPlace {
  readonly place: string
  readonly tools: ReturnType<typeof calledTools>
  readonly others: Array<string>
}

const addItem = (messages: Array<ChatMessage>, item: Item, { place, tools, others }: ItemPlace): void => {
  const { type, role, call_id, name } = item
  const id = call_id ?? ""
  switch (type ?? "message") {
    case "message": {
      const content = textOf(item.content, `${place}.content`, others)
      messages.push({ role: role === "developer" ? "system" : (role ?? "user"), content })
      return
    }
    case "function_call":
      tools.add(id, name ?? "")
      addCall(messages, { id, name: name ?? "", arguments: item.arguments ?? "" })
      return
    case "function_call_output": {
      const content = textOf(item.output, `${place}.output`, others)
      messages.push({ role: "tool", toolCallId: id, toolName: tools.of(id), content })
      return
    }
    // Thoughts of earlier answers, which only their own server can use.
    case "reasoning":
      return
    default:
      others.push(`${place} of type ${type}`)
  }
}

const toolsOf = ({ tools }: Body, others: Array<string>): ReadonlyArray<ToolSpec> =>
  (tools ?? []).flatMap(({ type, name, description, parameters }, index) => {
    if (type !== "function" || typeof name !== "string") {
      others.push(`tools[${index}] of type ${type}`)
      return []
    }
    return [{ name, description: description ?? "", parameters: parameters ?? { type: "object", properties: {} } }]
  })

const decodeBody = decoder(Body, { input: Item, tools: Tool })

/** Returns the messages of the earlier answer that a request continues. */
const earlierOf = ({ previous_response_id: id }: Body, earlier: EarlierAnswers) => {
  if (id === null || id === undefined) return Effect.succeed([])
  const messages = earlier(id)
  return messages === undefined
    ? Effect.fail(
        gatewayError(
          404,
          "previous_response_not_found",
          `this session has no response ${JSON.stringify(id)}, or keeps it no longer`,
        ),
      )
    : Effect.succeed(messages)
}

const decode = Effect.fnUntraced(function* (raw: Plain, earlier: EarlierAnswers) {
  const body = yield* decodeBody(raw)
  // The server would go on after its answer, so neither the text nor the tokens would be seen.
  if ((raw["background"] ?? false) !== false)
    return yield* badRequest("background: not supported, because such an answer is not recorded; leave it out")
  const others = [...unmodelledKeys(raw, unmodelled)]
  const { instructions, tool_choice: choice } = body
  const tools = toolsOf(body, others)
  const named = typeof choice === "object" ? (choice?.name ?? undefined) : undefined
  const conversation = [...(yield* earlierOf(body, earlier)), ...messagesOf(body.input, others)]
  const hasInstructions = instructions !== null && instructions !== undefined && instructions !== ""
  const request: ClientRequest = {
    model: body.model ?? "",
    messages: [...(hasInstructions ? [{ role: "system" as const, content: instructions }] : []), ...conversation],
    ...(body.store === false ? {} : { conversation }),
    settings: settingsOf({
      tools: tools.length === 0 ? undefined : onlyTool(tools, named),
      toolChoice: typeof choice === "object" && choice !== null ? "required" : choice,
      temperature: body.temperature,
      topP: body.top_p,
      maxOutputTokens: body.max_output_tokens,
    }),
    stream: body.stream === true,
    streamUsage: true,
    unmodelled: others,
  }
  return request
})

/** Returns the items of the output: a message, if there is a text or nothing else, and the calls of functions. */
const outputOf = ({ id }: AnswerFacts, { content, toolCalls }: Completion): ReadonlyArray<OutputItem> => [
  ...(content === "" && toolCalls.length > 0
    ? []
    : [
        {
          id: `msg_${id}`,
          type: "message" as const,
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: content, annotations: [], logprobs: [] }],
        },
      ]),
  ...toolCalls.map((call, at) => ({
    id: `fc_${id}_${at}`,
    type: "function_call" as const,
    call_id: call.id,
    name: call.name,
    arguments: call.arguments,
    status: "completed",
  })),
]

interface OutputMessage extends Plain {
  readonly id: string
  readonly type: "message"
  readonly content: ReadonlyArray<Plain & { readonly text: string }>
}

interface OutputCall extends Plain {
  readonly id: string
  readonly type: "function_call"
  readonly arguments: string
}

type OutputItem = OutputMessage | OutputCall

interface StreamEvent extends Plain {
  readonly type: string
}

const responseOf = (
  { id, created }: AnswerFacts,
  { model, usage, finishReason }: Completion,
  output: ReadonlyArray<object>,
  { isDone }: { readonly isDone: boolean },
) => {
  const { inputTokens, outputTokens, reasoningTokens } = usage
  const isCut = isDone && (finishReason === "length" || finishReason === "content_filter")
  const reason = finishReason === "length" ? "max_output_tokens" : "content_filter"
  return {
    id: responseId(id),
    object: "response",
    created_at: created,
    status: isCut ? "incomplete" : isDone ? "completed" : "in_progress",
    error: null,
    incomplete_details: isCut ? { reason } : null,
    instructions: null,
    metadata: {},
    model,
    output,
    parallel_tool_calls: true,
    temperature: null,
    tool_choice: "auto",
    tools: [],
    top_p: null,
    usage: isDone
      ? {
          input_tokens: inputTokens,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: outputTokens,
          output_tokens_details: { reasoning_tokens: reasoningTokens },
          total_tokens: inputTokens + outputTokens,
        }
      : null,
  }
}

const responseId = (id: string): string => `resp_${id}`

const whole = (facts: AnswerFacts, completion: Completion): object =>
  responseOf(facts, completion, outputOf(facts, completion), { isDone: true })

/** Returns the events of an item of the output, without their sequence numbers. */
const itemEvents = (item: OutputItem, output_index: number): ReadonlyArray<StreamEvent> => {
  const at = { item_id: item.id, output_index }
  const added = (begun: object) => ({ type: "response.output_item.added", output_index, item: { ...item, ...begun } })
  const done = { type: "response.output_item.done", output_index, item }
  if (item.type === "function_call") {
    return [
      added({ arguments: "", status: "in_progress" }),
      { type: "response.function_call_arguments.delta", ...at, delta: item.arguments },
      { type: "response.function_call_arguments.done", ...at, arguments: item.arguments },
      done,
    ]
  }
  const [part] = item.content
  const inPart = { ...at, content_index: 0 }
  return [
    added({ content: [], status: "in_progress" }),
    { type: "response.content_part.added", ...inPart, part: { ...part, text: "" } },
    { type: "response.output_text.delta", ...inPart, delta: part.text, logprobs: [] },
    { type: "response.output_text.done", ...inPart, text: part.text, logprobs: [] },
    { type: "response.content_part.done", ...inPart, part },
    done,
  ]
}

const events = (facts: AnswerFacts, completion: Completion): string => {
  const output = outputOf(facts, completion)
  const begun = responseOf(facts, completion, [], { isDone: false })
  const response = responseOf(facts, completion, output, { isDone: true })
  const all: ReadonlyArray<StreamEvent> = [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    ...output.flatMap(itemEvents),
    { type: `response.${response.status}`, response },
  ]
  return all.map((one, sequence_number) => event({ ...one, sequence_number }, one.type)).join("")
}

const failureEvent = ({ code, message }: GatewayError): string =>
  event({ type: "error", code, message, param: null, sequence_number: 0 }, "error")

/** OpenAI's responses. */
export const responses: ClientProtocol = {
  decode,
  whole,
  events,
  failure: openAiFailure,
  failureEvent,
  answerId: responseId,
}
