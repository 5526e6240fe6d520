/**
 * Keeps the messages and tools of a session's latest requests, so that a request that repeats them gets the same objects. Then they
 * are checked, measured and recorded once.
 */
import { jsonLength } from "../../base/text/jsonFacts.ts"
import type { Plain } from "../../base/config/plain.ts"
import type { ChatMessage, LmRequest, ToolSpec } from "../lm/Chat.ts"
import { SharedItems } from "./SharedItems.ts"

/** The largest number of characters of an item of a body that is kept. Longer ones, such as pictures, are read anew each time. */
const mostCharacters = 2 ** 16

const isSmall = (item: unknown): boolean =>
  typeof item === "object" && item !== null && jsonLength(item) <= mostCharacters

/** The lists that bodies repeat, in all protocols. */
const lists = ["messages", "input", "tools", "system"]

export class SharedRequests {
  private readonly bodies = new Map<string, SharedItems<unknown>>()
  private messages = new SharedItems<ChatMessage>()
  private tools = new SharedItems<ToolSpec>()

  /** Returns the body of a request with the objects of earlier bodies. */
  body(body: Plain): Plain {
    const shared: Record<string, unknown> = {}
    for (const key of lists) {
      const items: unknown = body[key]
      if (!Array.isArray(items)) continue
      const earlier = this.bodies.get(key) ?? new SharedItems<unknown>(isSmall)
      this.bodies.set(key, earlier)
      shared[key] = earlier.share(items).items
    }
    return { ...body, ...shared }
  }

  /** Returns a request with the messages and tools of earlier requests. */
  request(request: LmRequest): LmRequest {
    const { messages, tools } = request
    return { ...request, messages: this.messages.share(messages).items, tools: this.tools.share(tools).items }
  }

  /** Forgets all requests. Those of failed calls are in no record, so no limit on the memory counts them. */
  forget(): void {
    this.bodies.clear()
    this.messages = new SharedItems()
    this.tools = new SharedItems()
  }
}

/** Returns the number of characters of the messages and tools of a request as JSON. */
export const sizeOfRequest = ({ messages, tools }: LmRequest): number => {
  let size = 2
  for (const message of messages) size += jsonLength(message) + 1
  for (const tool of tools) size += jsonLength(tool) + 1
  return size
}
