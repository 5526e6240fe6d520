/**
 * Keeps the conversations up to a session's latest answers, which later requests may continue by the ids of the answers. When
 * they become too large, the oldest ones are dropped.
 */
import { jsonLength } from "../../base/text/jsonFacts.ts"
import type { ChatMessage } from "../lm/Chat.ts"

/** The size that each message counts in addition to its characters. */
const perMessage = 64

/** Returns the number of characters of messages as JSON, and a bit more for each of them. */
export const sizeOf = (messages: ReadonlyArray<ChatMessage>): number =>
  messages.reduce((size, message) => size + perMessage + jsonLength(message), 0)

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
    // A server may give several answers the same id.
    this.drop(id)
    if (size > this.most) return
    this.kept.set(id, { messages, size })
    this.size += size
    for (const oldest of this.kept.keys()) {
      if (this.size <= this.most) return
      this.drop(oldest)
    }
  }

  private drop(id: string): void {
    this.size -= this.kept.get(id)?.size ?? 0
    this.kept.delete(id)
  }
}
