/**
 * Defines a `Provider`, which calls a model over HTTP (`openAi.ts`, `anthropic.ts`) or is a script (`scripted.ts`), and
 * converts it to Effect's `LanguageModel`. With that, programs can run Effect's own AI functions on our providers.
 * `languageModel.ts` converts in the other direction.
 */
import { Effect, Layer, Stream } from "effect"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import { type ChatMessage, type Completion, LmRequest, type ToolSpec } from "../Chat.ts"
import { toAiError } from "./aiError.ts"
import { argumentsOf, CallSettings, effectFinishReasons, jsonOrText, ours } from "./languageModel.ts"
import type { LmError } from "../LmError.ts"

/** Asks for an answer in JSON that fits this JSON Schema. */
export interface JsonFormat {
  readonly name: string
  readonly schema: Readonly<Record<string, unknown>>
}

export interface Provider {
  /** The model for requests that do not name one. */
  readonly model: string
  readonly complete: (request: LmRequest, format?: JsonFormat) => Effect.Effect<Completion, LmError>
  /** Returns the parts of the answer as they arrive. If a provider has no `stream`, the whole answer is one part. */
  readonly stream?: (request: LmRequest) => Stream.Stream<Response.StreamPartEncoded, LmError>
}

/** Provides Effect's `LanguageModel`; its calls go to the provider. */
export const languageModel = <E, R>(
  provider: Effect.Effect<Provider, E, R>,
): Layer.Layer<LanguageModel.LanguageModel, E, R> =>
  Layer.effect(LanguageModel.LanguageModel, Effect.flatMap(provider, make))

const make = (provider: Provider): Effect.Effect<LanguageModel.LanguageModel> =>
  LanguageModel.make({
    generateText: (options) =>
      requestOf(provider.model, options).pipe(
        Effect.flatMap((request) => provider.complete(request, formatOf(options))),
        Effect.map(partsOf),
        Effect.mapError((error) => (AiError.isAiError(error) ? error : toAiError("generateText", error))),
      ),
    streamText: (options) =>
      Stream.unwrap(
        Effect.map(requestOf(provider.model, options), (request) =>
          provider.stream === undefined
            ? Stream.fromIterableEffect(Effect.map(provider.complete(request), streamPartsOf))
            : provider.stream(request),
        ),
      ).pipe(Stream.mapError((error) => (AiError.isAiError(error) ? error : toAiError("streamText", error)))),
  })

const formatOf = ({ responseFormat }: LanguageModel.ProviderOptions): JsonFormat | undefined =>
  responseFormat.type === "text"
    ? undefined
    : { name: responseFormat.objectName, schema: Tool.getJsonSchemaFromSchema(responseFormat.schema) }

const unsupported = (part: string): AiError.AiError =>
  AiError.make({
    module: "effect-rl",
    method: "prompt",
    reason: new AiError.InvalidUserInputError({ description: `prompt: expected text only, found ${part}` }),
  })

const textOf = (parts: ReadonlyArray<Prompt.UserMessagePart | Prompt.AssistantMessagePart>): string =>
  parts.map((part) => (part.type === "text" ? part.text : "")).join("")

const messagesOf = (message: Prompt.Message): ReadonlyArray<ChatMessage> => {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: message.content }]
    case "user":
      return [{ role: "user", content: textOf(message.content) }]
    case "assistant": {
      const toolCalls = message.content
        .filter((part) => part.type === "tool-call")
        .map((part) => ({ id: part.id, name: part.name, arguments: argumentsOf(part, part.options[ours]) }))
      const content = textOf(message.content)
      return [toolCalls.length === 0 ? { role: "assistant", content } : { role: "assistant", content, toolCalls }]
    }
    case "tool":
      return message.content.filter((part) => part.type === "tool-result").map(toolMessage)
  }
}

const toolMessage = ({ id, name, result, isFailure }: Prompt.ToolResultPart): ChatMessage => ({
  role: "tool",
  toolCallId: id,
  toolName: name,
  content: typeof result === "string" ? result : JSON.stringify(result),
  ...(isFailure ? { isError: true } : {}),
})

const toolsOf = (tools: ReadonlyArray<Tool.Any>): ReadonlyArray<ToolSpec> =>
  tools.map((tool) => ({
    name: tool.name,
    description: Tool.getDescription(tool) ?? "",
    parameters: Tool.getJsonSchema(tool),
  }))

const choiceOf = (choice: LanguageModel.ToolChoice<string>): LmRequest["toolChoice"] => {
  if (typeof choice === "string") return choice
  // If only some tools are allowed, Effect has already removed the other tools from the request.
  return "tool" in choice || choice.mode === "required" ? "required" : "auto"
}

const requestOf = Effect.fnUntraced(function* (model: string, options: LanguageModel.ProviderOptions) {
  const settings = yield* CallSettings
  const { prompt, toolChoice } = options
  for (const { content } of prompt.content) {
    for (const part of typeof content === "string" ? [] : content) {
      if (part.type === "file") return yield* unsupported(`a file of type ${part.mediaType}`)
    }
  }
  const messages = prompt.content.flatMap(messagesOf)
  const only = typeof toolChoice === "object" && "tool" in toolChoice ? toolChoice.tool : undefined
  const tools = toolsOf(only === undefined ? options.tools : options.tools.filter((tool) => tool.name === only))
  const choice: LmRequest["toolChoice"] = tools.length === 0 ? "auto" : choiceOf(toolChoice)
  return { ...LmRequest.defaults, model, ...settings, messages, tools, toolChoice: choice }
})

export const finishPart = ({ finishReason, usage, model, tokens }: Completion): Response.FinishPartEncoded => ({
  type: "finish",
  reason: effectFinishReasons[finishReason],
  usage: {
    inputTokens: { total: usage.inputTokens, uncached: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: usage.outputTokens, text: undefined, reasoning: usage.reasoningTokens },
  },
  metadata: { [ours]: { model, tokens } },
})

export const toolCallPart = (call: Completion["toolCalls"][number]): Response.ToolCallPartEncoded => ({
  type: "tool-call",
  id: call.id,
  name: call.name,
  params: jsonOrText(call.arguments),
  metadata: { [ours]: { arguments: call.arguments } },
})

const partsOf = (completion: Completion): Array<Response.PartEncoded> => [
  ...(completion.content === "" ? [] : [{ type: "text", text: completion.content } as const]),
  ...completion.toolCalls.map(toolCallPart),
  finishPart(completion),
]

const streamPartsOf = (completion: Completion): Array<Response.StreamPartEncoded> => [
  ...(completion.content === ""
    ? []
    : ([
        { type: "text-start", id: "0" },
        { type: "text-delta", id: "0", delta: completion.content },
        { type: "text-end", id: "0" },
      ] as const)),
  ...completion.toolCalls.map(toolCallPart),
  finishPart(completion),
]
