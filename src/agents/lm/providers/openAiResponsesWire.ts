/**
 * Decodes answers of OpenAI's responses protocol, and passes bodies of other programs on, for `openAi.ts`. Our own calls use chat
 * completions. These are pure functions.
 */
import { Schema } from "effect"
import { isPlain, type Plain } from "../../../base/config/plain.ts"
import { type Completion, type FinishReason, type LmRequest, noTokens } from "../Chat.ts"
import type { FailureBody } from "./http.ts"

/** A field that servers may leave out or set to null. */
const maybe = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** An item of the output. Its other keys depend on the type; only messages and calls of functions are recorded. */
const Item = Schema.Struct({
  type: Schema.String,
  id: maybe(Schema.String),
  call_id: maybe(Schema.String),
  name: maybe(Schema.String),
  arguments: maybe(Schema.String),
  content: maybe(
    Schema.Array(Schema.Struct({ type: Schema.String, text: maybe(Schema.String), refusal: maybe(Schema.String) })),
  ),
})
type Item = typeof Item.Type

const Response = Schema.Struct({
  id: maybe(Schema.String),
  model: maybe(Schema.String),
  status: maybe(Schema.String),
  error: maybe(Schema.Unknown),
  incomplete_details: maybe(Schema.Struct({ reason: maybe(Schema.String) })),
  output: maybe(Schema.Array(Item)),
  usage: maybe(
    Schema.Struct({
      input_tokens: maybe(Schema.Int),
      output_tokens: maybe(Schema.Int),
      output_tokens_details: maybe(Schema.Struct({ reasoning_tokens: maybe(Schema.Int) })),
    }),
  ),
})

/** A whole answer. One that has neither an output nor an error is none. */
export const Whole = Response.check(
  Schema.makeFilter(({ output, error }) => Array.isArray(output) || isPlain(error), { expected: "a response" }),
)

/** The largest number of items of an output. */
const mostItems = 10_000

/** An event of a stream. Types that the protocol adds later cause no error. */
export const Piece = Schema.Struct({
  type: Schema.String,
  response: maybe(Response),
  item: maybe(Item),
  output_index: maybe(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: mostItems }))),
  delta: maybe(Schema.Unknown),
  code: maybe(Schema.Unknown),
  message: maybe(Schema.Unknown),
  error: maybe(Schema.Unknown),
})

/** Collects an answer, which arrives whole or in events. */
export class OpenAiResponse {
  /** The items of the output by their places. The text of one that has not ended is in `texts`. */
  items: Array<Item | undefined> = []
  /** The texts, or the arguments, that have arrived of each item of a stream. */
  readonly texts: Array<string> = []
  id: string | null = null
  model: string | null = null
  usage: Completion["usage"] | null = null
  /** The reason for which the answer is not complete, as the server names it; null if it is complete. */
  incomplete: string | null = null
  /** Whether the event that ends the stream has arrived. */
  ended = false
}

const textOf = ({ content }: Item): string => (content ?? []).map(({ text }) => text ?? "").join("")

/** Returns the reason for which the model declined to answer; empty if it did not. */
const refusalOf = ({ items }: OpenAiResponse): string =>
  items.flatMap((item) => (item?.content ?? []).map(({ refusal }) => refusal ?? "")).join("")

/** Adds the facts of a response, which events at the beginning have without an output. */
const addFacts = (
  into: OpenAiResponse,
  { id, model, usage, incomplete_details: details }: typeof Response.Type,
): void => {
  into.id ??= id ?? null
  into.model = model ?? into.model
  into.incomplete = details?.reason ?? null
  if (usage === null || usage === undefined) return
  into.usage = {
    inputTokens: usage.input_tokens ?? 0,
    outputTokens: usage.output_tokens ?? 0,
    reasoningTokens: usage.output_tokens_details?.reasoning_tokens ?? 0,
  }
}

/** Adds a whole answer to `into`. Returns its text, or the failure that the server reports instead. */
export const gatherWhole = (into: OpenAiResponse, response: typeof Response.Type): string | FailureBody => {
  if (isPlain(response.error)) return { error: response.error }
  addFacts(into, response)
  // Some servers end a stream with a response that repeats only the facts.
  if (response.output !== null && response.output !== undefined) into.items = [...response.output]
  return into.items.map((item) => (item === undefined ? "" : textOf(item))).join("")
}

/** The events with a whole response that end a stream. */
const ends = ["response.completed", "response.incomplete", "response.failed"]

/** Adds an event of a stream to `into`. Returns the text in it, or the failure that the server reports instead. */
export const gather = (into: OpenAiResponse, event: typeof Piece.Type): string | FailureBody => {
  const { type, response, item, delta } = event
  const at = event.output_index ?? 0
  if (type === "error") return { error: event.error ?? { message: event.message, code: event.code } }
  if (ends.includes(type)) {
    into.ended = true
    const text = gatherWhole(into, response ?? {})
    return typeof text === "string" ? "" : text
  }
  if (response !== null && response !== undefined) addFacts(into, response)
  if (item !== null && item !== undefined) into.items[at] = item
  const isText = type === "response.output_text.delta"
  if (typeof delta !== "string" || !(isText || type === "response.function_call_arguments.delta")) return ""
  into.texts[at] = (into.texts[at] ?? "") + delta
  return isText ? delta : ""
}

const finishReasonOf = ({ incomplete }: OpenAiResponse, { hasCalls }: { readonly hasCalls: boolean }): FinishReason => {
  if (incomplete === "max_output_tokens") return "length"
  if (incomplete !== null) return incomplete === "content_filter" ? "content_filter" : "unknown"
  return hasCalls ? "tool_calls" : "stop"
}

/** Makes the completion of a request from its collected answer, or from the part of it that has arrived. */
export const completionOf = (request: LmRequest, from: OpenAiResponse): Completion => {
  const items = from.items.map((item, at) => ({ item, partial: from.texts[at] ?? "" }))
  const toolCalls = items.flatMap(({ item, partial }) =>
    item?.type === "function_call"
      ? [{ id: item.call_id ?? item.id ?? "", name: item.name ?? "", arguments: item.arguments || partial || "{}" }]
      : [],
  )
  const texts = items.map(({ item, partial }) => (item?.type === "message" ? textOf(item) || partial : ""))
  return {
    content: texts.join(""),
    toolCalls,
    finishReason: finishReasonOf(from, { hasCalls: toolCalls.length > 0 }),
    usage: from.usage ?? noTokens,
    tokens: null,
    model: from.model ?? request.model,
    attempts: 1,
  }
}

/** Returns the facts about an answer that are not part of its completion. */
export const factsOf = (from: OpenAiResponse) => ({
  hasContent: from.items.length > 0,
  refusal: refusalOf(from),
  finish: from.incomplete,
})

const isMissing = (value: unknown): boolean => value === undefined || value === null

/**
 * Returns the body of another program for the server. It is unchanged, except that it has the model's name at the server, and the
 * request's settings that it lacks. The protocol has no seed and no stop sequences.
 */
export const passedBody = (body: Plain, { model, temperature, topP, maxOutputTokens }: LmRequest): Plain => {
  const settings = { temperature, top_p: topP, max_output_tokens: maxOutputTokens }
  const missing = Object.entries(settings).filter(([key, value]) => value !== null && isMissing(body[key]))
  return { ...body, ...Object.fromEntries(missing), model }
}
