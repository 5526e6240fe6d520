/**
 * What is said to a language model and what comes back, as plain data: it goes into files, cache keys and samples as it
 * is, and knows no provider.
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

/** A call that a model asks for; its arguments are the JSON text that the model wrote, which may be no JSON at all. */
export const ToolCall = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  arguments: Schema.String,
})
export type ToolCall = typeof ToolCall.Type

/** One turn of a conversation. */
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

/** A tool as a model is told of it. */
export const ToolSpec = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  /** JSON Schema of an object. */
  parameters: Schema.Record(Schema.String, Schema.Unknown),
})
export type ToolSpec = typeof ToolSpec.Type

/**
 * Why a completion ended. `length` means that it was cut at `maxOutputTokens`: what was said is incomplete, and by
 * default isn't acted upon.
 */
export const FinishReason = Schema.Literals(["stop", "length", "tool_calls", "content_filter", "unknown"])
export type FinishReason = typeof FinishReason.Type

/** Zero where a server doesn't say. */
export const Usage = Schema.Struct({
  inputTokens: Schema.Int,
  outputTokens: Schema.Int,
  /** Of the output, what was thought and not said. */
  reasoningTokens: Schema.Int,
})
export type Usage = typeof Usage.Type

/** Counts the calls to a language model, and the tokens that went in and came out. */
export const LmUsage = Schema.Struct({
  calls: Schema.Int,
  retries: Schema.Int,
  inputTokens: Schema.Int,
  outputTokens: Schema.Int,
})
export type LmUsage = typeof LmUsage.Type

export const noUsage: LmUsage = { calls: 0, retries: 0, inputTokens: 0, outputTokens: 0 }

/**
 * The tokens of a call, where the server gives them. There are as many log-probabilities, and texts, as completion tokens.
 */
export const TokenTrace = Schema.Struct({
  promptIds: Schema.Array(Schema.Int),
  completionIds: Schema.Array(Schema.Int),
  logprobs: Schema.NullOr(Schema.Array(Schema.Finite)),
  /** What each completion token stands for; a letter that is several tokens stands with its last one. */
  texts: Schema.optionalKey(Schema.Array(Schema.String)),
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
    /** Of the sampling, for servers that take one. */
    seed: Schema.NullOr(Schema.Int),
    /** Asks for token ids and log-probabilities. */
    traceTokens: Schema.Boolean,
  }),
  {
    /** Everything but the model and the messages. */
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
  /** What the server calls the model that answered. */
  model: Schema.String,
  /** 1 where the first try succeeded. */
  attempts: Schema.Int,
})
export type Completion = typeof Completion.Type

/** The message by which a completion is remembered in the conversation. */
export const asMessage = ({ content, toolCalls }: Completion): ChatMessage =>
  toolCalls.length === 0 ? { role: "assistant", content } : { role: "assistant", content, toolCalls }
