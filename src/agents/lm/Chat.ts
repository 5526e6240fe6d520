/**
 * Defines requests to a language model and its completions, as plain data that is the same for all providers. Runs and
 * the cache of answers store this data in their files.
 *
 * @example
 * ```ts
 * const request: LmRequest = {
 *   ...LmRequest.defaults,
 *   model: "gpt-4.1-mini",
 *   messages: [{ role: "user", content: "What is 2 + 2?" }],
 * }
 * const { content, finishReason } = yield* Lm.complete(request)
 * ```
 */
import { Schema } from "effect"
import { EncodedExperts } from "../../base/formats/routedExperts.ts"

/**
 * A call of a tool that the model requests. `arguments` is the text that the model wrote, which is not always valid
 * JSON.
 */
export const ToolCall = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  arguments: Schema.String,
})
export type ToolCall = typeof ToolCall.Type

/** A message of a conversation, in one of four roles: system, user, assistant or tool. */
export const ChatMessage = Schema.Union([
  Schema.Struct({ role: Schema.Literals(["system", "user"]), content: Schema.String }),
  Schema.Struct({
    role: Schema.Literal("assistant"),
    content: Schema.String,
    toolCalls: Schema.optionalKey(Schema.Array(ToolCall)),
  }),
  Schema.Struct({
    role: Schema.Literal("tool"),
    toolCallId: Schema.String,
    toolName: Schema.String,
    content: Schema.String,
    isError: Schema.optionalKey(Schema.Boolean),
  }),
])
export type ChatMessage = typeof ChatMessage.Type

/** Describes a tool to a model: its name, what it does, and the JSON Schema of its parameters. */
export const ToolSpec = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  /** A JSON Schema of type `object`. */
  parameters: Schema.Record(Schema.String, Schema.Unknown),
})
export type ToolSpec = typeof ToolSpec.Type

/**
 * The reason why a completion ended. `length` means that it was cut off at `maxOutputTokens`; by default, agents do not
 * act upon such an incomplete completion.
 */
export const FinishReason = Schema.Literals(["stop", "length", "tool_calls", "content_filter", "unknown"])
export type FinishReason = typeof FinishReason.Type

/** Counts the tokens of a completion; 0 if the server did not report a count. */
export const Usage = Schema.Struct({
  inputTokens: Schema.Int,
  outputTokens: Schema.Int,
  /** The part of the output tokens that the model used for hidden reasoning. */
  reasoningTokens: Schema.Int,
})
export type Usage = typeof Usage.Type

/** The usage of a completion whose server did not report one. */
export const noTokens: Usage = { inputTokens: 0, outputTokens: 0, reasoningTokens: 0 }

/** The sums over several calls of a model, e.g. those of an episode: calls, retries, and tokens in and out. */
export const LmUsage = Schema.Struct({
  calls: Schema.Int,
  retries: Schema.Int,
  inputTokens: Schema.Int,
  outputTokens: Schema.Int,
})
export type LmUsage = typeof LmUsage.Type

export const noUsage: LmUsage = { calls: 0, retries: 0, inputTokens: 0, outputTokens: 0 }

/**
 * The token ids of one call; only some servers return them. `logprobs` and `texts` have one item per completion token.
 */
export const TokenTrace = Schema.Struct({
  promptIds: Schema.Array(Schema.Int),
  completionIds: Schema.Array(Schema.Int),
  logprobs: Schema.NullOr(Schema.Array(Schema.Finite)),
  /** The text of each completion token. A character that spans several tokens is in the text of the last of these. */
  texts: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The weights that generated the completion. Only servers of this library report them. */
  weights: Schema.optionalKey(
    Schema.Struct({
      /** The name of the base model or adapter. */
      model: Schema.String,
      /** The training step of these weights. */
      step: Schema.Int,
    }),
  ),
  /**
   * The experts that the model chose for the tokens of the prompt and the completion, without the last one, which it has not
   * read. Only a trainer that replays them asks its model for them.
   */
  routedExperts: Schema.optionalKey(EncodedExperts),
})
export type TokenTrace = typeof TokenTrace.Type

export const LmRequest = Object.assign(
  Schema.Struct({
    model: Schema.String,
    messages: Schema.Array(ChatMessage),
    tools: Schema.Array(ToolSpec),
    toolChoice: Schema.Literals(["auto", "none", "required"]),
    temperature: Schema.NullOr(Schema.Finite),
    topP: Schema.NullOr(Schema.Finite),
    maxOutputTokens: Schema.NullOr(Schema.Int),
    stop: Schema.Array(Schema.String),
    /** The seed of the sampling, for servers that accept one. */
    seed: Schema.NullOr(Schema.Int),
    /** Whether the server is asked for token ids and log-probabilities. */
    traceTokens: Schema.Boolean,
  }),
  {
    /** The default values of all fields except the model and the messages. */
    defaults: {
      tools: [],
      toolChoice: "auto",
      temperature: null,
      topP: null,
      maxOutputTokens: null,
      stop: [],
      seed: null,
      traceTokens: false,
    } as const,
  },
)
export type LmRequest = typeof LmRequest.Type

export const Completion = Schema.Struct({
  content: Schema.String,
  toolCalls: Schema.Array(ToolCall),
  finishReason: FinishReason,
  usage: Usage,
  tokens: Schema.NullOr(TokenTrace),
  /** The name that the server reports for the model that answered. */
  model: Schema.String,
  /** The number of attempts: 1 if the first one succeeded, 0 if the answer did not come by a call through us. */
  attempts: Schema.Int,
})
export type Completion = typeof Completion.Type

/** The answer that a model is trained to give: a text, or the call of a tool. */
export type ChatAnswer = string | Pick<ToolCall, "name" | "arguments">

/**
 * Converts messages to one system prompt and one prompt, for formats without conversations. A single message is not changed;
 * of several messages, each begins with its role.
 */
export const asPrompts = (
  messages: ReadonlyArray<ChatMessage>,
): { readonly system: string; readonly prompt: string } => {
  const others = messages.filter(({ role }) => role !== "system")
  const named = others.map(({ role, content }) => `${role === "assistant" ? "Assistant" : "User"}: ${content}`)
  return {
    system: messages.flatMap(({ role, content }) => (role === "system" ? [content] : [])).join("\n\n"),
    prompt: others.length === 1 ? others[0].content : named.join("\n\n"),
  }
}

/** Makes the assistant message that adds a completion to the conversation. */
export const asMessage = ({ content, toolCalls }: Completion): ChatMessage =>
  toolCalls.length === 0 ? { role: "assistant", content } : { role: "assistant", content, toolCalls }
