/**
 * Describes calls of models, tools and agents as spans, whose names and attributes are those of OpenTelemetry's semantic
 * conventions for generative AI (release 0.1.0). Attributes of our own begin with `effect_rl.`. `spans.ts` makes the spans.
 *
 * @example
 * ```ts
 * const url = new URL("https://api.openai.com/v1")
 * const { complete } = traced({ provider: "openai", url, nameAtServer: (model) => model })(lm)
 * const { content } = yield* complete(request) // in the span "chat gpt-4.1-mini"
 * ```
 */
import { Effect, Exit } from "effect"
import type { ChatMessage, Completion, LmRequest, ToolCall } from "./Chat.ts"
import { CallContext, type LmService, type Middleware } from "./Lm.ts"
import type { LmError } from "./LmError.ts"
import { addEvent, type Attributes, inSpan, type SpanPlan } from "./spans.ts"

/** Where the calls of a model go. */
export interface CallDestination {
  /** The provider, by the name that the conventions have for it. */
  readonly provider: string
  /** The address of the server; null for a model in this process. */
  readonly url: URL | null
  /** Converts the name of a model in a config to its name at the server. */
  readonly nameAtServer: (model: string) => string
}

/** The provider of the models that this library computes itself. */
export const ownProvider = "effect-rl"

/** Drops the attributes that a call does not have. */
const present = (attributes: Readonly<Record<string, Attributes[string] | null | undefined>>): Attributes =>
  Object.fromEntries(
    Object.entries(attributes).flatMap(([key, value]) => (value === null || value === undefined ? [] : [[key, value]])),
  )

const defaultPorts: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 }

const addressOf = (url: URL | null): Attributes =>
  url === null
    ? {}
    : present({
        "server.address": url.hostname,
        "server.port": url.port === "" ? defaultPorts[url.protocol] : Number(url.port),
      })

const textPart = (content: string) => (content === "" ? [] : [{ type: "text", content }])

const callPart = ({ id, name, arguments: text }: ToolCall) => ({ type: "tool_call", id, name, arguments: text })

/** Converts a message to the form in which attributes hold it. */
const messageOf = (message: ChatMessage) => {
  const { role, content } = message
  if (role === "tool")
    return { role, parts: [{ type: "tool_call_response", id: message.toolCallId, response: content }] }
  const calls = role === "assistant" ? (message.toolCalls ?? []) : []
  return { role, parts: [...textPart(content), ...calls.map(callPart)] }
}

const answerOf = ({ content, toolCalls, finishReason }: Completion) => ({
  ...messageOf({ role: "assistant", content, toolCalls }),
  finish_reason: finishReason === "tool_calls" ? "tool_call" : finishReason,
})

const requestTexts = ({ messages, tools }: LmRequest): Attributes => ({
  "gen_ai.input.messages": JSON.stringify(messages.map(messageOf)),
  ...(tools.length > 0 && {
    "gen_ai.tool.definitions": JSON.stringify(tools.map((tool) => ({ type: "function", ...tool }))),
  }),
})

const answerAttributes = ({ model, finishReason, usage, attempts }: Completion): Attributes => ({
  "gen_ai.response.model": model,
  "gen_ai.response.finish_reasons": [finishReason],
  "gen_ai.usage.input_tokens": usage.inputTokens,
  "gen_ai.usage.output_tokens": usage.outputTokens,
  ...(usage.reasoningTokens > 0 && { "gen_ai.usage.reasoning.output_tokens": usage.reasoningTokens }),
  "effect_rl.attempts": attempts,
})

/** Describes a call of a model. The span lasts until the answer is complete, with all retries. */
const chatPlan = (
  { provider, url, nameAtServer }: CallDestination,
  request: LmRequest,
  { phase, purpose, episode, step }: CallContext,
  content: boolean,
): SpanPlan<Completion, LmError> => ({
  name: `chat ${nameAtServer(request.model)}`,
  kind: url === null ? "internal" : "client",
  attributes: {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": provider,
    "gen_ai.request.model": nameAtServer(request.model),
    ...present({
      "gen_ai.request.temperature": request.temperature,
      "gen_ai.request.top_p": request.topP,
      "gen_ai.request.max_tokens": request.maxOutputTokens,
      "gen_ai.request.seed": request.seed,
      "gen_ai.request.stop_sequences": request.stop.length === 0 ? null : request.stop,
    }),
    ...addressOf(url),
    "effect_rl.phase": phase._tag,
    "effect_rl.purpose": purpose,
    "effect_rl.episode": episode,
    "effect_rl.step": step,
    ...(content && requestTexts(request)),
  },
  ended: (exit) =>
    Exit.isFailure(exit)
      ? {}
      : {
          ...answerAttributes(exit.value),
          ...(content && { "gen_ai.output.messages": JSON.stringify([answerOf(exit.value)]) }),
        },
})

/** Makes the middleware that puts each call of a model in a span. */
export const traced =
  (destination: CallDestination): Middleware =>
  (lm: LmService) => ({
    complete: (request) =>
      Effect.flatMap(CallContext, (context) =>
        inSpan(({ content }) => chatPlan(destination, request, context, content), lm.complete(request)),
      ),
  })

/** Runs a request for embeddings, with all retries, in a span. */
export const inEmbeddingSpan = <A, E, R>(model: string, running: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  inSpan(
    () => ({
      name: `embeddings ${model}`,
      kind: "client",
      attributes: {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": model,
      },
    }),
    running,
  )

/** Runs a call of a tool in a span. */
export const inToolSpan = <A extends { readonly content: string; readonly isError?: boolean }, E, R>(
  call: ToolCall,
  running: Effect.Effect<A, E, R>,
): Effect.Effect<A, E, R> =>
  inSpan(
    ({ content }) => ({
      name: `execute_tool ${call.name}`,
      kind: "internal",
      attributes: {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
        ...(content && { "gen_ai.tool.call.arguments": call.arguments }),
      },
      ended: (exit) =>
        Exit.isFailure(exit)
          ? {}
          : {
              ...(exit.value.isError === true && { "error.type": "tool_error" }),
              ...(content && { "gen_ai.tool.call.result": exit.value.content }),
            },
    }),
    running,
  )

/** Runs an episode, or a turn, of an agent in a span. `id` identifies the episode. */
export const inAgentSpan = <A, E, R>(
  { type, model }: { readonly type: string; readonly model: string | null },
  id: string,
  running: Effect.Effect<A, E, R>,
): Effect.Effect<A, E, R> =>
  inSpan(
    () => ({
      name: `invoke_agent ${type}`,
      kind: "internal",
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": ownProvider,
        "gen_ai.agent.name": type,
        ...present({ "gen_ai.request.model": model }),
        "effect_rl.rollout": id,
      },
    }),
    running,
  )

/**
 * Runs an episode of an evaluation in a span: the agent's play, and the scores of its answers as events. It is a trace of its
 * own, because an evaluation may have more episodes than a trace should have spans.
 */
export const inEpisodeSpan = <A, E, R>(
  { agent, index }: { readonly agent: string; readonly index: number },
  running: Effect.Effect<A, E, R>,
): Effect.Effect<A, E, R> =>
  inSpan(
    () => ({
      name: "effect-rl.episode",
      kind: "internal",
      isRoot: true,
      attributes: { "gen_ai.agent.name": agent, "effect_rl.episode": index + 1 },
    }),
    running,
  )

/** Adds the score of an answer to the current span, as an event. */
export const addScore = (name: string, value: number): Effect.Effect<void> =>
  addEvent("gen_ai.evaluation.result", { "gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": value })
