/** OpenAI's chat completions as they go over the wire: what is sent, and what comes back, whole or piece by piece. */
import { Schema } from "effect"
import { withDefault } from "../../config/fields.ts"
import type { ChatMessage, Completion, FinishReason, LmRequest, ToolCall } from "../Chat.ts"
import type { JsonFormat } from "./Provider.ts"

/** Who listens, as far as servers of this protocol differ in what they take. */
export interface Dialect {
  /** Takes `return_token_ids`; others refuse what they don't know. */
  readonly tokenIds: boolean
  /** Put into every request as it is. */
  readonly extra: Readonly<Record<string, unknown>>
}

/** OpenAI's models that think first. They refuse a temperature, and count the limit of tokens by another name. */
const thinks = (model: string): boolean => /(^|\/|^ft:)(o\d|gpt-5(?!.*chat))/.test(model)

const messageBody = (message: ChatMessage): Readonly<Record<string, unknown>> => {
  switch (message.role) {
    case "assistant":
      return message.toolCalls === undefined || message.toolCalls.length === 0
        ? { role: "assistant", content: message.content }
        : {
            role: "assistant",
            content: message.content === "" ? null : message.content,
            tool_calls: message.toolCalls.map(({ id, name, arguments: said }) => ({
              id,
              type: "function",
              function: { name, arguments: said },
            })),
          }
    case "tool":
      return { role: "tool", tool_call_id: message.toolCallId, content: message.content }
    default:
      return { role: message.role, content: message.content }
  }
}

/** What is sent for a request; what it leaves open is left out. */
export const requestBody = (
  request: LmRequest,
  { tokenIds, extra }: Dialect,
  how: { readonly format?: JsonFormat | undefined; readonly stream: boolean },
): Readonly<Record<string, unknown>> => ({
  model: request.model,
  messages: request.messages.map(messageBody),
  ...(request.tools.length === 0
    ? {}
    : {
        tools: request.tools.map(({ name, description, parameters }) => ({
          type: "function",
          function: { name, description, parameters },
        })),
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
  ...(how.format === undefined
    ? {}
    : {
        response_format: {
          type: "json_schema",
          json_schema: { name: how.format.name, schema: how.format.schema },
        },
      }),
  ...(how.stream ? { stream: true, stream_options: { include_usage: true } } : {}),
  ...extra,
})

/** Servers leave out what they don't have, or say null. */
const maybe = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const Ids = maybe(Schema.Array(Schema.Int))

const Said = Schema.Struct({
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
  message: maybe(Said),
  delta: maybe(Said),
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
})

const Counts = Schema.Struct({
  prompt_tokens: maybe(Schema.Int),
  completion_tokens: maybe(Schema.Int),
  completion_tokens_details: maybe(Schema.Struct({ reasoning_tokens: maybe(Schema.Int) })),
})

const shared = {
  model: maybe(Schema.String),
  usage: maybe(Counts),
  prompt_token_ids: Ids,
}

/** Some gateways tell of a failure by 200 and this. */
const Failed = Schema.Struct({ error: Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]) })
export const isFailed = Schema.is(Failed)

const WholeChoice = Schema.Struct({ ...Choice.fields, message: Said })

/** An answer at once; it has a choice, or is none. */
export const Whole = Schema.Union([Failed, Schema.Struct({ ...shared, choices: Schema.NonEmptyArray(WholeChoice) })])

/** A piece of a streamed one; that with the usage has no choice, or doesn't speak of any. */
export const Piece = Schema.Union([
  Failed,
  Schema.Struct({ ...shared, choices: Schema.Array(Choice) }),
  Schema.Struct({ ...shared, usage: Counts, choices: withDefault(Schema.Array(Choice), []) }),
])
export type Piece = Exclude<typeof Piece.Type, typeof Failed.Type>

const finishReasons: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool_calls",
  function_call: "tool_calls",
  content_filter: "content_filter",
}

/** An answer as far as it has come. */
export interface Gathered {
  content: string
  /** Whether there was any text at all, if only an empty one. */
  hasContent: boolean
  /** Why the model declined, in its words. */
  refusal: string
  readonly calls: Array<{ readonly index: number | null; readonly id: string; name: string; arguments: string }>
  finish: string | null
  model: string | null
  usage: Completion["usage"] | null
  promptIds: ReadonlyArray<number> | null
  readonly ids: Array<number>
  readonly logprobs: Array<number | null>
  /** The ids beside the log-probabilities, where llama.cpp puts them. */
  readonly logprobIds: Array<number>
  /** What each of these tokens stands for, where that is said. */
  readonly texts: Array<string | null>
  /** Letters may be several tokens long. */
  readonly decoder: InstanceType<typeof TextDecoder>
}

export const gathered = (): Gathered => ({
  content: "",
  hasContent: false,
  refusal: "",
  calls: [],
  finish: null,
  model: null,
  usage: null,
  promptIds: null,
  ids: [],
  logprobs: [],
  logprobIds: [],
  texts: [],
  decoder: new TextDecoder(),
})

const textOf = ({ content }: typeof Said.Type): string =>
  typeof content === "string" ? content : (content ?? []).map(({ text }) => text ?? "").join("")

const gatherCalls = (
  into: Gathered,
  calls: NonNullable<(typeof Said.Type)["tool_calls"]>,
  how: { readonly whole: boolean },
): void => {
  for (const { index, id, function: called } of calls) {
    const begun = typeof index === "number" ? into.calls.findLast((call) => call.index === index) : into.calls.at(-1)
    // Gemini says that all of its calls are the first, each with an id of its own.
    const another = how.whole || begun === undefined || (Boolean(id) && id !== begun.id)
    const call = another ? { index: index ?? null, id: id ?? "", name: "", arguments: "" } : begun
    if (another) into.calls.push(call)
    call.name ||= called?.name ?? ""
    const said = called?.arguments ?? ""
    call.arguments += typeof said === "string" ? said : JSON.stringify(said)
  }
}

/** Adds a piece, and says what text it adds. */
export const gather = (into: Gathered, piece: Piece): string => {
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
  const said = choice.message ?? choice.delta ?? {}
  const text = textOf(said)
  into.content += text
  into.hasContent ||= said.content !== null && said.content !== undefined
  into.refusal += said.refusal ?? ""
  gatherCalls(into, said.tool_calls ?? [], { whole: choice.delta === null || choice.delta === undefined })
  into.finish ??= choice.finish_reason ?? null
  into.promptIds ??= choice.prompt_token_ids ?? said.prompt_token_ids ?? null
  for (const id of choice.token_ids ?? said.generation_token_ids ?? []) into.ids.push(id)
  for (const { logprob, id, token, bytes } of choice.logprobs?.content ?? []) {
    into.logprobs.push(logprob ?? null)
    const text = bytes === null || bytes === undefined ? token : into.decoder.decode(Uint8Array.from(bytes), streamed)
    into.texts.push(text ?? null)
    if (id !== null && id !== undefined) into.logprobIds.push(id)
  }
  return text
}

const streamed = { stream: true }

/** The tokens that an answer has brought, or null: a trace with a hole is none. */
const tokensOf = (from: Gathered): Completion["tokens"] => {
  const completionIds = completionIdsOf(from)
  if (from.promptIds === null || completionIds.length === 0) return null
  const logprobs = from.logprobs.filter((logprob) => logprob !== null)
  const texts = from.texts.filter((text) => text !== null)
  return {
    promptIds: from.promptIds,
    completionIds,
    logprobs: logprobs.length === completionIds.length ? logprobs : null,
    ...(texts.length === completionIds.length ? { texts } : {}),
  }
}

export const completionIdsOf = ({ ids, logprobs, logprobIds }: Gathered): ReadonlyArray<number> =>
  ids.length > 0 ? ids : logprobIds.length === logprobs.length ? logprobIds : []

/** What was gathered, as the answer to its request. */
export const completionOf = (request: LmRequest, from: Gathered): Completion => {
  const toolCalls = from.calls.map((call, at): ToolCall => ({
    // Unlike in any other turn, so that a result finds its call.
    id: call.id === "" ? `call_${request.messages.length}_${at}` : call.id,
    name: call.name,
    arguments: call.arguments === "" ? "{}" : call.arguments,
  }))
  const finish = finishReasons[from.finish ?? ""] ?? "unknown"
  return {
    content: from.content,
    toolCalls,
    // Some servers end a turn of calls by "stop".
    finishReason: finish === "stop" && toolCalls.length > 0 ? "tool_calls" : finish,
    usage: from.usage ?? { inputTokens: 0, outputTokens: 0, reasoningTokens: 0 },
    tokens: request.traceTokens ? tokensOf(from) : null,
    model: from.model ?? request.model,
    attempts: 1,
  }
}
