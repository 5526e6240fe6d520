/**
 * Calls a model that runs in this process in an `Engine`, without HTTP. Prompts, answers and token traces are the same as
 * with the provider `OpenAi` and the server of `src/decoder/serve/`, so a rollout does not depend on where its model runs.
 *
 * @example
 * ```ts
 * const engine = yield* Engine
 * const lm = EngineLm.make({ engine, chat: chatModel, model: "base" })
 * const { content, tokens } = yield* lm.complete({ ...request, seed: 1, traceTokens: true })
 * tokens?.weights // { model: "base", step: 0 }
 * ```
 *
 * A config names such a model as `builtin:NAME`, if it is opened with `Lms.open(config, { models: { NAME: lm } })`, or as
 * `decoder:FOLDER`, if the service `Decoders` is provided.
 */
import { Effect, Layer } from "effect"
import { encodeExperts } from "../../base/formats/routedExperts.ts"
import {
  Engine,
  type EngineError,
  type EngineService,
  type Generated,
  type RequestedSampling,
} from "../inference/Engine.ts"
import type { ChatMessage, Completion, LmRequest, TokenTrace, ToolSpec } from "../../agents/lm/Chat.ts"
import { Lm } from "../../agents/lm/Lm.ts"
import { type LmError, lmError, withoutModel } from "../../agents/lm/LmError.ts"
import type { Provider } from "../../agents/lm/providers/Provider.ts"
import { collect } from "../../agents/lm/toolFormats/ToolFormat.ts"
import {
  type ChatModel,
  type ChatConversation,
  type ModelTokens,
  type ChatPrompt,
  promptOf as conversationPrompt,
} from "./ChatModel.ts"

export interface EngineLmOptions {
  readonly engine: Pick<EngineService, "generate">
  readonly chat: ChatModel
  /** The base model or adapter for requests that name no model, or come from a config with `builtin:` or `decoder:`. */
  readonly model: string
  /** Sampling settings that requests do not have, such as `topK`. */
  readonly sampling?: RequestedSampling
}

const templateMessage = (message: ChatMessage): Readonly<Record<string, unknown>> => {
  if (message.role === "tool") {
    const { toolCallId, toolName, content } = message
    return { role: "tool", tool_call_id: toolCallId, name: toolName, content }
  }
  const { role, content } = message
  if (message.role !== "assistant" || message.toolCalls === undefined || message.toolCalls.length === 0) {
    return { role, content }
  }
  const calls = message.toolCalls.map(({ id, name, arguments: written }) => {
    return { id, type: "function", function: { name, arguments: written } }
  })
  return { role, content, tool_calls: calls }
}

const templateTool = ({ name, description, parameters }: ToolSpec) => ({
  type: "function" as const,
  function: { name, description, parameters },
})

/** The reasons of failures after which another attempt may succeed. */
const temporary: ReadonlyArray<EngineError["reason"]> = ["backend", "closed"]

const failure =
  (model: string) =>
  ({ reason, message }: EngineError): LmError =>
    lmError(model, temporary.includes(reason) ? "unavailable" : "rejected", withoutModel(model, message), {
      attempts: 1,
      ...(reason === "promptTooLong" ? { promptTooLong: true } : {}),
    })

/** The option that makes a `TextDecoder` keep the bytes of an incomplete character until the next token. */
const streamed = { stream: true }

const traceOf = (tokens: ModelTokens, promptIds: ReadonlyArray<number>, generated: Generated): TokenTrace => {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  return {
    promptIds,
    completionIds: generated.tokens.map(({ id }) => id),
    logprobs: generated.tokens.map(({ logprob }) => logprob),
    texts: generated.tokens.map(({ id }) => decoder.decode(tokens.bytesOf(id), streamed)),
    weights: { model: generated.weights.model, step: generated.weights.step },
    ...(generated.routedExperts === undefined ? {} : { routedExperts: encodeExperts(generated.routedExperts) }),
  }
}

/** Returns the prompt of a request as token ids, and a reader of the answer. */
export const promptOf = (
  chat: ChatModel,
  { messages, tools, toolChoice }: Pick<LmRequest, "messages" | "tools" | "toolChoice">,
  { addGenerationPrompt = true }: Pick<ChatConversation, "addGenerationPrompt"> = {},
): Effect.Effect<ChatPrompt, EngineError> =>
  conversationPrompt(chat, {
    messages: messages.map(templateMessage),
    tools: tools.map(templateTool),
    toolChoice,
    addGenerationPrompt,
  })

/**
 * Makes the provider of an engine's model. Answers in JSON are held to their schema while they are generated.
 */
export const make = ({ engine, chat, model, sampling: defaults = {} }: EngineLmOptions): Provider => {
  // Warn only once: an evaluation may have thousands of such answers.
  let hasWarned = false
  return {
    model,
    complete: Effect.fnUntraced(function* (request: LmRequest, format) {
      const name = /^$|^(builtin|decoder):/.test(request.model) ? model : request.model
      if (format !== undefined && request.tools.length > 0 && request.toolChoice !== "none") {
        return yield* lmError(name, "rejected", "expected no tools, since an answer in JSON cannot call tools")
      }
      const { ids, reader, schema } = yield* Effect.mapError(promptOf(chat, request), ({ part, message }) =>
        lmError(name, "rejected", `${part}: ${message}`),
      )
      const sampling = {
        ...defaults,
        ...(request.temperature === null ? {} : { temperature: request.temperature }),
        ...(request.topP === null ? {} : { topP: request.topP }),
        maxTokens: request.maxOutputTokens,
        stop: request.stop,
        seed: request.seed,
        ...(format === undefined ? {} : { jsonSchema: format.schema }),
        ...(schema === null ? {} : { jsonSchema: schema }),
      }
      const generated = yield* Effect.mapError(
        engine.generate({ model: name, promptIds: ids, sampling }),
        failure(name),
      )
      const most = request.maxOutputTokens
      const isCut = generated.finishReason === "length" && most !== null && generated.tokens.length < most
      if (isCut && !hasWarned) {
        hasWarned = true
        const taken = ids.length + generated.tokens.length
        yield* Effect.logWarning(
          `${name}: an answer was cut off after ${generated.tokens.length} tokens, fewer than max_output_tokens: ${most}, because the model takes at most ${taken} tokens of prompt and answer together and the prompt has ${ids.length}; this is said once`,
        )
      }
      const answer = reader()
      const { content, calls } = collect([...answer.push(generated.text), ...answer.end()])
      const completion: Completion = {
        content,
        toolCalls: calls.map((call, at) => ({ id: `call_${request.messages.length}_${at}`, ...call })),
        finishReason: generated.finishReason === "stop" && calls.length > 0 ? "tool_calls" : generated.finishReason,
        usage: { inputTokens: ids.length, outputTokens: generated.tokens.length, reasoningTokens: 0 },
        tokens: request.traceTokens ? traceOf(chat.tokens, ids, generated) : null,
        model: name,
        attempts: 1,
      }
      return completion
    }),
  }
}

/** Provides `Lm` with the engine of the context. */
export const layer = (options: Omit<EngineLmOptions, "engine">): Layer.Layer<Lm, never, Engine> =>
  Layer.effect(
    Lm,
    Effect.map(Engine, (engine) => make({ ...options, engine })),
  )
