/** Defines the body of `POST /v1/responses`, and converts its input to the messages of a chat. */
import { Effect, Schema } from "effect"
import { fraction, intBetween, nonNegative, positiveInt } from "../../../base/config/fields.ts"
import { type ApiError, badRequest } from "../ApiError.ts"
import { type ChatBody, maybe, type RequestMessage } from "../requests.ts"

const Part = Schema.Struct({ type: Schema.String, text: maybe(Schema.String) })

/** A message, a call of a tool, or its result. The keys that each needs are checked when it is converted. */
const InputItem = Schema.Struct({
  type: maybe(Schema.String),
  role: maybe(Schema.Literals(["system", "developer", "user", "assistant"])),
  content: maybe(Schema.Union([Schema.String, Schema.Array(Part)])),
  call_id: maybe(Schema.String),
  name: maybe(Schema.String),
  arguments: maybe(Schema.String),
  output: maybe(Schema.Union([Schema.String, Schema.Array(Part)])),
})
type InputItem = typeof InputItem.Type

const Format = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text") }),
  Schema.Struct({ type: Schema.Literal("json_object") }),
  Schema.Struct({
    type: Schema.Literal("json_schema"),
    name: maybe(Schema.String),
    schema: Schema.Record(Schema.String, Schema.Unknown),
  }),
])

export const ResponsesBody = Schema.Struct({
  model: maybe(Schema.String),
  input: Schema.Union([Schema.String, Schema.NonEmptyArray(InputItem)]),
  instructions: maybe(Schema.String),
  tools: maybe(
    Schema.Array(
      Schema.Struct({
        type: Schema.Literal("function"),
        name: Schema.NonEmptyString,
        description: maybe(Schema.String),
        parameters: maybe(Schema.Record(Schema.String, Schema.Unknown)),
        strict: maybe(Schema.Boolean),
      }),
    ),
  ),
  tool_choice: maybe(
    Schema.Union([
      Schema.Literals(["none", "auto", "required"]),
      Schema.Struct({ type: Schema.Literal("function"), name: Schema.String }),
    ]),
  ),
  parallel_tool_calls: maybe(Schema.Boolean),
  temperature: maybe(nonNegative),
  top_p: maybe(fraction.check(Schema.isGreaterThan(0))),
  top_k: maybe(intBetween(-1, 1_000_000)),
  seed: maybe(Schema.Int),
  max_output_tokens: maybe(positiveInt),
  text: maybe(Schema.Struct({ format: maybe(Format) })),
  stream: maybe(Schema.Boolean),
})
export type ResponsesBody = typeof ResponsesBody.Type

/** Returns the JSON Schema of the answer; null if it can be any text. */
export const jsonSchemaOfText = ({ text }: ResponsesBody) => {
  const format = text?.format
  if (!format || format.type === "text") return null
  return format.type === "json_schema" ? format.schema : { type: "object" }
}

/** Returns the tools in the form of chat completions. */
export const chatTools = ({ tools, tool_choice: choice }: ResponsesBody): Pick<ChatBody, "tools" | "tool_choice"> => ({
  tools: (tools ?? []).map(({ type, ...called }) => ({ type, function: called })),
  tool_choice:
    typeof choice === "object" && choice !== null
      ? { type: "function", function: { name: choice.name } }
      : (choice ?? "auto"),
})

const partTypes = ["input_text", "output_text", "text"]

/** Converts the parts of a content to those of chat completions. */
const textOf = Effect.fnUntraced(function* (
  content: InputItem["content"],
  place: string,
): Effect.fn.Return<string, ApiError> {
  if (typeof content === "string") return content
  if (!content) return yield* badRequest(`${place}: expected a text`, place)
  for (const [index, { type, text }] of content.entries()) {
    if (partTypes.includes(type) && typeof text === "string") continue
    const param = `${place}[${index}]`
    return yield* badRequest(`${param}: expected a part of type input_text, found type ${type.slice(0, 64)}`, param)
  }
  return content.map(({ text }) => text).join("\n")
})

type ToolCall = NonNullable<RequestMessage["tool_calls"]>[number]

/** Returns the call of a tool. */
const callOf = Effect.fnUntraced(function* (item: InputItem, place: string): Effect.fn.Return<ToolCall, ApiError> {
  const { call_id: id, name, arguments: written } = item
  for (const key of ["call_id", "name", "arguments"] as const) {
    if (typeof item[key] !== "string") return yield* badRequest(`${place}.${key}: expected a text`, `${place}.${key}`)
  }
  return { id: id ?? "", type: "function", function: { name: name ?? "", arguments: written ?? "" } }
})

/**
 * Converts the instructions and the input to messages. As in an answer, calls belong to the assistant's message before them,
 * so that a conversation has the same prompt as in a request for a chat completion.
 */
export const messagesOfInput = Effect.fnUntraced(function* ({
  input,
  instructions,
}: ResponsesBody): Effect.fn.Return<readonly [RequestMessage, ...ReadonlyArray<RequestMessage>], ApiError> {
  const messages: Array<RequestMessage> = instructions ? [{ role: "system", content: instructions }] : []
  const items: ReadonlyArray<InputItem> = typeof input === "string" ? [{ role: "user", content: input }] : input
  for (const [index, item] of items.entries()) {
    const place = `input[${index}]`
    const { type = "message", role } = item
    if (type === "function_call") {
      const call = yield* callOf(item, place)
      const last = messages.at(-1)
      const before = last?.role === "assistant" ? last : undefined
      if (before !== undefined) messages.pop()
      messages.push({
        role: "assistant",
        content: before?.content ?? "",
        tool_calls: [...(before?.tool_calls ?? []), call],
      })
    } else if (type === "function_call_output") {
      if (typeof item.call_id !== "string")
        return yield* badRequest(`${place}.call_id: expected a text`, `${place}.call_id`)
      const content = yield* textOf(item.output, `${place}.output`)
      messages.push({ role: "tool", tool_call_id: item.call_id, content })
    } else if (type === "message" && role) {
      messages.push({ role, content: yield* textOf(item.content, `${place}.content`) })
    } else {
      const found = type === "message" ? "a message without a role" : `type ${String(type).slice(0, 64)}`
      const problem = `expected a message, a function_call or a function_call_output, found ${found}`
      return yield* badRequest(`${place}: ${problem}`, place)
    }
  }
  const [first, ...rest] = messages
  return [first, ...rest]
})
