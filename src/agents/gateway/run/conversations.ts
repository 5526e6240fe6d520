/**
 * Joins the calls of a session to conversations. A call whose messages begin with the messages and the answer of an earlier
 * call continues that call's conversation. A call with a rewritten prompt, or a second continuation of the same call, begins
 * another one.
 */
import { canonical } from "../../../base/config/canonical.ts"
import { parsedJson } from "../../../base/config/text.ts"
import type { ModelCall, ToolResult } from "../../agent/Agent.ts"
import { asMessage, type ChatMessage, type ToolCall } from "../../lm/Chat.ts"

type Call = Pick<ModelCall, "messages" | "completion">

/** The place of a call among the conversations of its session. */
interface ConversationPlace {
  /** The number of the conversation, from 0, in the order in which they begin. */
  readonly conversation: number
  /** The number of calls of the conversation before this one. */
  readonly position: number
  /** The index of the call that this one continues; null for the first call of a conversation. */
  readonly continues: number | null
}

/** Tells whether two texts of arguments mean the same: programs may write JSON anew. */
const sameArguments = (one: string, other: string): boolean => {
  if (one === other) return true
  const [left, right] = [parsedJson(one), parsedJson(other)]
  return left !== undefined && right !== undefined && canonical(left) === canonical(right)
}

const callsOf = (message: ChatMessage): ReadonlyArray<ToolCall> =>
  message.role === "assistant" ? (message.toolCalls ?? []) : []

/** Tells whether two messages are the same, except for spaces at the end and the ids of calls, which programs may change. */
export const sameMessage = (one: ChatMessage, other: ChatMessage): boolean => {
  if (one === other) return true
  if (one.role !== other.role) return false
  if (one.content !== other.content && one.content.trimEnd() !== other.content.trimEnd()) return false
  const [left, right] = [callsOf(one), callsOf(other)]
  return (
    left.length === right.length &&
    left.every(({ name, arguments: text }, at) => name === right[at].name && sameArguments(text, right[at].arguments))
  )
}

/** Tells whether messages begin with the messages and the answer of an earlier call. */
const continuesCall = (messages: ReadonlyArray<ChatMessage>, { messages: before, completion }: Call): boolean => {
  if (messages.length <= before.length || !sameMessage(messages[before.length], asMessage(completion))) return false
  for (let at = before.length - 1; at >= 0; at--) if (!sameMessage(messages[at], before[at])) return false
  return true
}

/** Identifies an answer and its position among the messages, to find the calls that a later call may continue. */
const keyOf = (position: number, answer: ChatMessage): string => {
  const names = callsOf(answer).map(({ name }) => name)
  return JSON.stringify([position, answer.content.trimEnd(), names])
}

/** Returns the place of each call, in the order of the calls. */
export const placesOf = (calls: ReadonlyArray<Call>): ReadonlyArray<ConversationPlace> => {
  const places: Array<ConversationPlace> = []
  const continued = new Set<number>()
  const byAnswer = new Map<string, Array<number>>()
  let conversations = 0
  for (const [index, call] of calls.entries()) {
    let earlier: number | undefined
    // The longest beginning is the newest call of the conversation.
    for (let at = call.messages.length - 1; at > 0 && earlier === undefined; at--) {
      if (call.messages[at].role !== "assistant") continue
      const candidates = byAnswer.get(keyOf(at, call.messages[at])) ?? []
      earlier = candidates.findLast((candidate) => continuesCall(call.messages, calls[candidate]))
    }
    const isNext = earlier !== undefined && !continued.has(earlier)
    const place: ConversationPlace =
      earlier !== undefined && isNext
        ? { conversation: places[earlier].conversation, position: places[earlier].position + 1, continues: earlier }
        : { conversation: conversations++, position: 0, continues: null }
    if (place.continues !== null) continued.add(place.continues)
    places.push(place)
    const key = keyOf(call.messages.length, asMessage(call.completion))
    byAnswer.set(key, [...(byAnswer.get(key) ?? []), index])
  }
  return places
}

/** Returns the results of the tools that an agent ran after a call, from the messages of the call that continues it. */
export const toolResultsIn = ({ messages: before }: Call, { messages }: Call): ReadonlyArray<ToolResult> =>
  messages.slice(before.length + 1).flatMap((message) =>
    message.role === "tool"
      ? [
          {
            toolCallId: message.toolCallId,
            toolName: message.toolName,
            content: message.content,
            isError: message.isError ?? false,
          },
        ]
      : [],
  )
