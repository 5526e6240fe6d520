/**
 * Makes the completion of a model for a given answer: a text, or a tool call in the format of its chat template. Supervised
 * fine-tuning learns from the tokens of such completions.
 *
 * @example
 * ```ts
 * const call = { name: "calculator", arguments: '{"expression": "6*7"}' }
 * const { toolCalls, tokens } = yield* writtenAnswer(chatModel, request, call, { eos: 2 })
 * ```
 */
import { Effect } from "effect"
import type { ChatAnswer, Completion, LmRequest } from "../../agents/lm/Chat.ts"
import { collect } from "../../agents/lm/toolFormats/ToolFormat.ts"
import type { EngineError } from "../inference/EngineError.ts"
import { type ChatModel, promptError } from "./ChatModel.ts"
import { promptOf } from "./EngineLm.ts"

const startsWith = (ids: ReadonlyArray<number>, first: ReadonlyArray<number>): boolean =>
  first.every((id, at) => ids[at] === id)

/** Makes the completion. `eos` is the token that ends an answer; null if the model has none. */
export const writtenAnswer = Effect.fnUntraced(function* (
  chat: ChatModel,
  request: LmRequest,
  answer: ChatAnswer,
  { eos }: { readonly eos: number | null },
): Effect.fn.Return<Completion, EngineError> {
  const { ids: promptIds, reader } = yield* promptOf(chat, request)
  const end = eos === null ? [] : [eos]
  const completionOf = (
    ids: ReadonlyArray<number>,
    content: string,
    toolCalls: Completion["toolCalls"],
  ): Completion => ({
    content,
    toolCalls,
    finishReason: toolCalls.length > 0 ? "tool_calls" : "stop",
    usage: { inputTokens: promptIds.length, outputTokens: ids.length, reasoningTokens: 0 },
    tokens: { promptIds: [...promptIds], completionIds: [...ids], logprobs: null },
    model: request.model,
    attempts: 1,
  })
  if (typeof answer === "string") return completionOf([...chat.tokens.encode(answer), ...end], answer, [])

  const call = { id: `call_${request.messages.length}_0`, ...answer }
  const messages = [...request.messages, { role: "assistant" as const, content: "", toolCalls: [call] }]
  const { ids } = yield* promptOf(chat, { ...request, messages }, { addGenerationPrompt: false })
  const wrong = (problem: string) => promptError("tools", `a call of ${call.name}: ${problem}`)
  if (!startsWith(ids, promptIds))
    return yield* wrong("expected a chat template that keeps the text before an answer; this one changes it")
  const rest = ids.slice(promptIds.length)
  const written = rest.slice(0, eos === null || !rest.includes(eos) ? rest.length : rest.indexOf(eos))
  const reading = reader()
  const { content, calls } = collect([...reading.push(chat.tokens.decode(written)), ...reading.end()])
  if (content !== "" || calls.length !== 1 || calls[0].name !== call.name)
    return yield* wrong("expected an agent with tools, and a chat template that writes calls so that they can be read")
  return completionOf([...written, ...end], content, [{ ...call, ...calls[0] }])
})
