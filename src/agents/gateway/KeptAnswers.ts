/**
 * Keeps the conversations up to a session's latest answers, which later requests may continue by the ids of the answers. When
 * they become too large, the oldest ones are dropped.
 */
import type { ChatMessage } from "../lm/Chat.ts"

/** What each message counts in addition to its characters. */
const perMessage = 64

/** Returns the number of characters of messages, and a bit more for each of them. */
export const sizeOf = (messages: ReadonlyArray<ChatMessage>): number => {
  let size = 0
  for (const message of messages) {
    size += perMessage + message.content.length
    if (message.role !== "assistant") continue
    for (const call of message.toolCalls ?? []) size += call.name.length + call.arguments.length
  }
  return size
}

export class KeptAnswers {
  private readonly kept = new Map<string, { readonly messages: ReadonlyArray<ChatMessage>; readonly size: number }>()
  private size = 0
  private readonly most: number

  /** `most` is the largest number of characters of all conversations that are kept. */
  constructor(most: number) {
    this.most = most
  }

  /** Returns the messages up to an answer, with the answer; undefined if it is unknown or was dropped. */
  get(id: string): ReadonlyArray<ChatMessage> | undefined {
    return this.kept.get(id)?.messages
  }

  /** Keeps the messages up to an answer, unless they alone are too large. */
  add(id: string, messages: ReadonlyArray<ChatMessage>): void {
    const size = sizeOf(messages)
    if (size > this.most) return
    this.kept.set(id, { messages, size })
    this.size += size
    for (const [oldest, { size }] of this.kept) {
      if (this.size <= this.most) return
      this.kept.delete(oldest)
      this.size -= size
    }
  }
}
