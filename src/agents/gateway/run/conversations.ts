/**
 * Joins the calls of a session to conversations. A call whose messages begin with the messages and the answer of an earlier
 * call continues that call's conversation. A call with a rewritten prompt, or a second continuation of the same call, begins
 * another one.
 */
import { canonical } from "../../../base/text/canonical.ts"
import { parsedJson } from "../../../base/text/text.ts"
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

const callsOf = (message: ChatMessage): ReadonlyArray<ToolCall> =>
  message.role === "assistant" ? (message.toolCalls ?? []) : []

/**
 * Returns a text that two messages have in common if, and only if, they are the same, except for spaces at the end, the JSON of
 * arguments, and the ids of calls: programs may change these.
 */
const digestOf = (message: ChatMessage): string => {
  const calls = callsOf(message).map(({ name, arguments: text }) => {
    const value = parsedJson(text)
    return value === undefined ? [name, text] : [name, canonical(value), "json"]
  })
  return JSON.stringify([message.role, message.content.trimEnd(), calls])
}

/** Numbers the beginnings of conversations: equal lists of messages have the same number. */
class Beginnings {
  private readonly digests = new WeakMap<ChatMessage, number>()
  private readonly messages = new Map<string, number>()
  private readonly numbers = new Map<string, number>()

  /** Returns the number of the beginning `before`, followed by a message. The empty beginning is 0. */
  after(before: number, message: ChatMessage): number {
    const key = `${before} ${this.messageNumber(message)}`
    const number = this.numbers.get(key) ?? this.numbers.size + 1
    this.numbers.set(key, number)
    return number
  }

  private messageNumber(message: ChatMessage): number {
    const known = this.digests.get(message)
    if (known !== undefined) return known
    const digest = digestOf(message)
    const number = this.messages.get(digest) ?? this.messages.size
    this.messages.set(digest, number)
    this.digests.set(message, number)
    return number
  }
}

/** Returns the place of each call, in the order of the calls. Its time grows with the number of messages of all calls. */
export const placesOf = (calls: ReadonlyArray<Call>): ReadonlyArray<ConversationPlace> => {
  const places: Array<ConversationPlace> = []
  const continued = new Set<number>()
  const beginnings = new Beginnings()
  /** The newest call of each beginning that ends with the call's answer. */
  const byAnswer = new Map<number, number>()
  let conversations = 0
  for (const [index, call] of calls.entries()) {
    let earlier: number | undefined
    let beginning = 0
    for (const message of call.messages) {
      beginning = beginnings.after(beginning, message)
      // The longest beginning is the newest call of the conversation.
      earlier = byAnswer.get(beginning) ?? earlier
    }
    const isNext = earlier !== undefined && !continued.has(earlier)
    const place: ConversationPlace =
      earlier !== undefined && isNext
        ? { conversation: places[earlier].conversation, position: places[earlier].position + 1, continues: earlier }
        : { conversation: conversations++, position: 0, continues: null }
    if (place.continues !== null) continued.add(place.continues)
    places.push(place)
    byAnswer.set(beginnings.after(beginning, asMessage(call.completion)), index)
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
