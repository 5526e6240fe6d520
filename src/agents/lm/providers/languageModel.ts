/**
 * Converts Effect's `LanguageModel` to our `LmService` (`toLm`), so that our agents can call such a model. `Provider.ts`
 * converts in the other direction, and uses the smaller conversions of this file.
 */
import { Context, Effect, Option, Result, Schema } from "effect"
import type * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { type ChatMessage, type Completion, FinishReason, type LmRequest, TokenTrace, type ToolSpec } from "../Chat.ts"
import type { LmService } from "../Lm.ts"
import { fromAiError } from "./aiError.ts"
import { withheld } from "../LmError.ts"

/** The settings of a request that `LanguageModel` has no parameters for. */
export type CallSettings = Omit<LmRequest, "messages" | "tools" | "toolChoice">

/**
 * Passes the settings of a call to our own providers. Other implementations of `LanguageModel` ignore them, and have
 * their own ways to set e.g. a temperature.
 */
export const CallSettings = Context.Reference<CallSettings | undefined>("effect-rl/lm/CallSettings", {
  defaultValue: () => undefined,
})

/** The name under which our own metadata is stored in Effect's messages and response parts. */
export const ours = "effect-rl"

const readFinish = Schema.decodeUnknownOption(
  Schema.Struct({ model: Schema.String, tokens: Schema.NullOr(TokenTrace) }),
)
const readCall = Schema.decodeUnknownOption(Schema.Struct({ arguments: Schema.String }))

/** Parses JSON; returns other text unchanged. */
export const jsonOrText = (text: string): unknown =>
  Result.getOrElse(
    Result.try(() => Tool.unsafeSecureJsonParse(text)),
    () => text,
  )

/**
 * Returns the arguments of a tool call as the text that the model wrote, which our own providers store in `metadata`. Without
 * such metadata, returns the decoded arguments as JSON.
 */
export const argumentsOf = (part: { readonly params: unknown }, metadata: unknown): string =>
  Option.match(readCall(metadata), {
    onSome: (ours) => ours.arguments,
    onNone: () => (typeof part.params === "string" ? part.params : JSON.stringify(part.params ?? {})),
  })

const promptMessage = (message: ChatMessage): Prompt.Message => {
  switch (message.role) {
    case "system":
      return Prompt.makeMessage("system", { content: message.content })
    case "user":
      return Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: message.content })] })
    case "assistant":
      return Prompt.makeMessage("assistant", {
        content: [
          ...(message.content === "" ? [] : [Prompt.makePart("text", { text: message.content })]),
          ...(message.toolCalls ?? []).map((call) =>
            Prompt.makePart("tool-call", {
              id: call.id,
              name: call.name,
              params: jsonOrText(call.arguments),
              providerExecuted: false,
              options: { [ours]: { arguments: call.arguments } },
            }),
          ),
        ],
      })
    case "tool":
      return Prompt.makeMessage("tool", {
        content: [
          Prompt.makePart("tool-result", {
            id: message.toolCallId,
            name: message.toolName,
            isFailure: message.isError ?? false,
            result: message.content,
            providerExecuted: false,
          }),
        ],
      })
  }
}

const makeToolkit = (tools: ReadonlyArray<ToolSpec>) =>
  Toolkit.make(
    ...tools.map((tool) => Tool.dynamic(tool.name, { description: tool.description, parameters: tool.parameters })),
  )
const toolkits = new WeakMap<ReadonlyArray<ToolSpec>, ReturnType<typeof makeToolkit>>()

/** Returns the same toolkit object for the same array of tools, because Effect caches decoders by toolkit object. */
const toolkitOf = (tools: ReadonlyArray<ToolSpec>) => {
  const cached = toolkits.get(tools)
  if (cached !== undefined) return cached
  const toolkit = makeToolkit(tools)
  toolkits.set(tools, toolkit)
  return toolkit
}

const isFinishReason = Schema.is(FinishReason)

export const effectFinishReasons = {
  stop: "stop",
  length: "length",
  tool_calls: "tool-calls",
  content_filter: "content-filter",
  unknown: "unknown",
} as const satisfies Record<FinishReason, Response.FinishReason>

const completionOf = (model: string, parts: ReadonlyArray<Response.AnyPart>): Completion => {
  let content = ""
  const toolCalls: Array<Completion["toolCalls"][number]> = []
  let finish: Response.FinishPart | undefined
  for (const part of parts) {
    if (part.type === "text") content += part.text
    else if (part.type === "tool-call")
      toolCalls.push({ id: part.id, name: part.name, arguments: argumentsOf(part, part.metadata[ours]) })
    else if (part.type === "finish") finish = part
  }
  const metadata = Option.getOrUndefined(readFinish(finish?.metadata[ours]))
  const finishReason = finish?.reason.replace("-", "_")
  return {
    content,
    toolCalls,
    finishReason: isFinishReason(finishReason) ? finishReason : "unknown",
    usage: {
      inputTokens: finish?.usage.inputTokens.total ?? 0,
      outputTokens: finish?.usage.outputTokens.total ?? 0,
      reasoningTokens: finish?.usage.outputTokens.reasoning ?? 0,
    },
    tokens: metadata?.tokens ?? null,
    model: metadata?.model ?? model,
    attempts: 1,
  }
}

/** Makes an `LmService` from an Effect `LanguageModel`. */
export const toLm = (languageModel: LanguageModel.LanguageModel): LmService => ({
  complete: (request) => {
    const { messages, tools, toolChoice, ...settings } = request
    const prompt = Prompt.fromMessages(messages.map(promptMessage))
    // Effect must neither run the tools nor check their arguments, because agents do both.
    const deferred = { disableToolCallResolution: true, toolCallValidation: "deferred" } as const
    const response: Effect.Effect<{ readonly content: ReadonlyArray<Response.AnyPart> }, AiError.AiError> =
      tools.length === 0
        ? languageModel.generateText({ prompt, ...deferred })
        : languageModel.generateText({ prompt, toolkit: toolkitOf(tools), toolChoice, ...deferred })
    return response.pipe(
      Effect.provideService(CallSettings, settings),
      Effect.mapError((error) => fromAiError(request.model, error)),
      Effect.map(({ content }) => completionOf(request.model, content)),
      Effect.filterOrFail(
        ({ finishReason }) => finishReason !== "content_filter",
        ({ model }) => withheld(model),
      ),
    )
  },
})
