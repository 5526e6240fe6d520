/** Compares the prompts of a rollout, and finds in them what its calls do not say. These are pure functions. */
import { parsedJson } from "../../../base/text/text.ts"
import type { ToolResult } from "../../agent/Agent.ts"
import type { AgentStep, RolloutStep } from "../../episode/Rollout.ts"
import { asMessage, type ChatMessage } from "../../lm/Chat.ts"

/** Tells whether two lists of messages are equal; a missing field differs from an empty one. */
export const sameMessages = (some: ReadonlyArray<ChatMessage>, others: ReadonlyArray<ChatMessage>): boolean =>
  same(some, others, (text) => text)

/**
 * Tells whether a prompt begins with a conversation. The arguments of tool calls may be other texts of the same JSON, because
 * libraries parse what the model wrote and write it anew.
 */
export const continues = (prompt: ReadonlyArray<ChatMessage>, conversation: ReadonlyArray<ChatMessage>): boolean =>
  same(prompt.slice(0, conversation.length), conversation, (text) => JSON.stringify(parsedJson(text)) ?? text)

const same = (
  some: ReadonlyArray<ChatMessage>,
  others: ReadonlyArray<ChatMessage>,
  argumentsOf: (text: string) => string,
): boolean =>
  some.length === others.length &&
  some.every((one, at) => {
    const other = others[at]
    if (one === other) return true
    if (one.content !== other.content || one.role !== other.role) return false
    return JSON.stringify(sorted(one, argumentsOf)) === JSON.stringify(sorted(other, argumentsOf))
  })

const sorted = (message: ChatMessage, argumentsOf: (text: string) => string): unknown => {
  const calls = message.role === "assistant" ? message.toolCalls : undefined
  return [
    ...Object.entries(message)
      .filter(([key]) => key !== "toolCalls")
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
    calls?.map(({ id, name, arguments: text }) => [id, name, argumentsOf(text)]),
  ]
}

/** Returns the results of tools that follow the message at a position. */
export const resultsAfter = (messages: ReadonlyArray<ChatMessage>, at: number): ReadonlyArray<ToolResult> => {
  const results: Array<ToolResult> = []
  for (let next = at + 1; next < messages.length; next++) {
    const message = messages[next]
    if (message.role !== "tool") break
    const { toolCallId, toolName, content, isError = false } = message
    results.push({ toolCallId, toolName, content, isError })
  }
  return results
}

/**
 * Returns the results of a call's tools that only a later prompt of the same turn has: those of an agent that runs its tools
 * itself, and whose calls of the model were recorded on their way. `at` is the call's position in `steps`.
 */
export const resultsInPrompt = (
  { turnId, call, toolResults }: AgentStep,
  { steps, at }: { readonly steps: ReadonlyArray<RolloutStep>; readonly at: number },
): ReadonlyArray<ToolResult> => {
  if (call.completion.toolCalls.length === 0 || call.toolResults.length > 0 || toolResults.length > 0) return []
  const conversation = [...call.messages, asMessage(call.completion)]
  for (let next = at + 1; next < steps.length; next++) {
    const step = steps[next]
    if (step.turnId !== turnId) break
    if (step._tag !== "AgentStep") continue
    const { messages } = step.call
    if (messages.at(conversation.length)?.role !== "tool" || !continues(messages, conversation)) continue
    return resultsAfter(messages, call.messages.length)
  }
  return []
}
