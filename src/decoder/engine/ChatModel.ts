/**
 * Converts a conversation to the token ids of a prompt, and a model's text to an answer with tool calls, because an `Engine`
 * handles only token ids. The HTTP server and the provider in this process both use it, so they give a model the same
 * prompts.
 *
 * @example
 * ```ts
 * const { ids, reader } = yield* promptOf(chatModel, {
 *   messages: [{ role: "user", content: "What is 2 + 2?" }],
 *   tools: [],
 *   toolChoice: "auto",
 * })
 * ```
 */
import { Effect, Schema } from "effect"
import type { ChatTemplate, ChatRenderOptions } from "../../base/tokens/ChatTemplate.ts"
import { encodeAtMost, mostCharacters } from "../../base/tokens/encodeAtMost.ts"
import type { Tokenizer } from "../../base/tokens/Tokenizer.ts"
import { attempt } from "../../base/config/attempt.ts"
import { EngineError } from "../inference/EngineError.ts"
import { forcedCall, type ForcedTool } from "./forcedCall.ts"
import {
  type AnswerEvent,
  byName,
  type FormatName,
  formatOf,
  type ToolFormat,
  type ToolReader,
} from "../../agents/lm/toolFormats/ToolFormats.ts"

/** The methods of a tokenizer that a conversation needs. */
export type ModelTokens = Pick<Tokenizer, "encode" | "decode" | "bytesOf" | "longestToken">

/** A model with which one can chat: its tokenizer, its chat template, and its format of tool calls. */
export interface ChatModel {
  readonly tokens: ModelTokens
  /** The chat template; null for a model that only continues texts. */
  readonly template: {
    /** Renders a conversation; fails if the template refuses it. */
    readonly render: (options: ChatRenderOptions) => Effect.Effect<string, { readonly message: string }>
  } | null
  /** The format of tool calls; null for a model that calls no tools. */
  readonly toolFormat: ToolFormat | null
}

/**
 * Makes the chat model of a tokenizer and its template. If the format of tool calls is not given, it is detected from the
 * template.
 */
export const make = (
  { tokenizer, template }: { readonly tokenizer: Tokenizer; readonly template: ChatTemplate },
  toolFormat: FormatName | "none" | "auto" = "auto",
): ChatModel => ({
  tokens: tokenizer,
  template,
  toolFormat: toolFormat === "auto" ? formatOf(template.source) : toolFormat === "none" ? null : byName[toolFormat],
})

/** Makes the error of a conversation that cannot be converted to a prompt of the model. */
export const promptError = (part: EngineError["part"] & string, message: string): EngineError =>
  new EngineError({ reason: "invalidRequest", part, message })

export interface ChatConversation {
  readonly messages: ChatRenderOptions["messages"]
  readonly tools: ReadonlyArray<{ readonly type: "function"; readonly function: ForcedTool }>
  /** `none` hides the tools; `required` or a name makes the model call a tool. */
  readonly toolChoice: "none" | "auto" | "required" | { readonly name: string }
  /** Whether the prompt ends with the beginning of the assistant's message. Default: true. */
  readonly addGenerationPrompt?: boolean
  readonly variables?: Readonly<Record<string, unknown>>
  /**
   * The largest number of tokens of the prompt. A longer one is refused before it is encoded completely. Default: no limit.
   */
  readonly maxTokens?: number
}

export interface ChatPrompt {
  readonly ids: ReadonlyArray<number>
  /** The JSON Schema of the answer's text, if it must be a call of a tool; null if it can be any text. */
  readonly schema: Readonly<Record<string, unknown>> | null
  /** Makes the reader that splits one answer into text and calls. */
  readonly reader: () => ToolReader
}

/** The reader of an answer that contains no calls. */
const textReader: ToolReader = {
  push: (text) => (text === "" ? [] : [{ _tag: "Text", text }]),
  end: () => [],
}

const Calls = Schema.Array(Schema.Struct({ id: Schema.String, function: Schema.Struct({ name: Schema.String }) }))
const hasCalls = Schema.is(Schema.Struct({ tool_calls: Calls }))

const callsOf = (message: unknown): typeof Calls.Type => (hasCalls(message) ? message.tool_calls : [])

const charactersIn = (messages: ChatRenderOptions["messages"]): number =>
  messages.reduce((sum, { content }) => sum + (typeof content === "string" ? content.length : 0), 0)

/** Some templates write the tool's name before its result, but in OpenAI's protocol a result has only the id of the call. */
const withToolNames = (messages: ChatRenderOptions["messages"]): ChatRenderOptions["messages"] => {
  const names = new Map<unknown, unknown>()
  return messages.map((message) => {
    for (const call of callsOf(message)) names.set(call.id, call.function.name)
    const name = message.role === "tool" ? (message.name ?? names.get(message.tool_call_id)) : message.name
    return name === undefined ? message : { ...message, name }
  })
}

/**
 * Renders and encodes a conversation. If the model must call a tool, the prompt ends with the beginning of a call, so the
 * model can only continue it, and the prompt has the schema to which the rest must be held. The reader already has this
 * beginning.
 */
export const promptOf = Effect.fnUntraced(function* (
  { tokens, template, toolFormat }: ChatModel,
  { messages, tools, toolChoice, addGenerationPrompt = true, variables, maxTokens = Infinity }: ChatConversation,
): Effect.fn.Return<ChatPrompt, EngineError> {
  if (template === null) {
    const message = "the model has no chat template; send a text to /v1/completions, or give it a template"
    return yield* promptError("messages", message)
  }
  const names = tools.map((tool) => tool.function.name)
  const forced = typeof toolChoice === "object" || toolChoice === "required"
  if (forced && names.length === 0) {
    return yield* promptError("toolChoice", "a tool must be called, but tools is empty")
  }
  if (typeof toolChoice === "object" && !names.includes(toolChoice.name)) {
    const message = `expected one of ${names.join(", ")}, found ${toolChoice.name}`
    return yield* promptError("toolChoice", message)
  }
  const tooLong = ({ message }: { readonly message: string }) =>
    new EngineError({ reason: "promptTooLong", part: "messages", message: `the conversation ${message}` })
  const characters = charactersIn(messages)
  const limit = mostCharacters(tokens, maxTokens)
  if (characters > limit) {
    const message = `has ${characters} characters; expected at most ${maxTokens} tokens (${limit} characters)`
    return yield* tooLong({ message })
  }
  const encode = (text: string) => Effect.mapError(encodeAtMost(tokens, text, maxTokens), tooLong)
  const shown = toolChoice === "none" ? [] : tools
  if (shown.length > 0 && toolFormat === null) {
    const message = "the model's chat template has no tools, or writes their calls in an unknown format"
    return yield* promptError("tools", message)
  }
  const rendered = yield* template
    .render({
      messages: withToolNames(messages),
      tools: shown.map((tool) => ({ ...tool })),
      addGenerationPrompt,
      ...(variables === undefined ? {} : { variables }),
    })
    .pipe(Effect.mapError(({ message }) => promptError("messages", message)))
  if (toolFormat === null || shown.length === 0)
    return { ids: yield* encode(rendered), schema: null, reader: () => textReader }
  const only = typeof toolChoice === "object" ? toolChoice.name : names.length === 1 ? names[0] : null
  const specs = tools.map((tool) => tool.function)
  const { opening, schema } = forced
    ? yield* attempt(() => forcedCall(toolFormat, specs, only), EngineError)
    : { opening: "", schema: null }
  return {
    ids: yield* encode(rendered + opening),
    schema,
    reader: () => {
      const reader = toolFormat.reader({ tools: names })
      let begun: ReadonlyArray<AnswerEvent> = opening === "" ? [] : reader.push(opening)
      const withBegun = (events: ReadonlyArray<AnswerEvent>): ReadonlyArray<AnswerEvent> => {
        const all = begun.length === 0 ? events : [...begun, ...events]
        begun = []
        return all
      }
      return { push: (text) => withBegun(reader.push(text)), end: () => withBegun(reader.end()) }
    },
  }
})
