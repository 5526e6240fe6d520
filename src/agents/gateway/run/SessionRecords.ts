/** Collects what a gateway records of its sessions, and counts it. The live gateway and the journal of an earlier one feed it. */
import type { ModelCall } from "../../agent/Agent.ts"
import type { ChatMessage } from "../../lm/Chat.ts"
import { sizeOf } from "../KeptAnswers.ts"
import { sameMessage } from "./conversations.ts"
import type { JournalEntry, SessionBegun } from "./journal.ts"
import type { RecordedSession } from "./rollout.ts"

/** What a gateway has recorded in all. */
interface GatewayTotals {
  sessions: number
  calls: number
  /** The calls that failed, or that were cut off. */
  failed: number
  inputTokens: number
  outputTokens: number
  /** The number of sessions that got a reward, and the sum of the rewards. */
  rewarded: number
  rewards: number
}

export const noTotals = (): GatewayTotals => ({
  sessions: 0,
  calls: 0,
  failed: 0,
  inputTokens: 0,
  outputTokens: 0,
  rewarded: 0,
  rewards: 0,
})

/** A session that has not ended. */
interface OpenRecord {
  readonly begun: SessionBegun
  readonly calls: Map<number, ModelCall>
  /** The number of characters in memory. */
  characters: number
  reward: number | null
}

/**
 * Returns the messages of a call, with the same objects as in the call before where they are equal. The prompts of a session
 * mostly grow, so that each message is in memory once, and not once for each call.
 */
const sharing = (messages: ReadonlyArray<ChatMessage>, before: ModelCall | undefined): ReadonlyArray<ChatMessage> => {
  if (before === undefined) return messages
  const shared = before.messages
  return messages.map((message, at) =>
    at < shared.length && message.content === shared[at].content && sameMessage(message, shared[at])
      ? shared[at]
      : message,
  )
}

export class SessionRecords {
  readonly totals: GatewayTotals
  private readonly open = new Map<string, OpenRecord>()
  /** The number of characters of the calls of all open sessions in memory. */
  characters = 0

  constructor(totals: GatewayTotals) {
    this.totals = totals
  }

  /** The ids of the sessions that have not ended. */
  get ids(): ReadonlyArray<string> {
    return [...this.open.keys()]
  }

  /** Adds an entry. If it ends a session, returns the session, of which nothing is kept. */
  add(entry: JournalEntry): RecordedSession | undefined {
    if (entry._tag === "Begun") {
      this.open.set(entry.id, { begun: entry, calls: new Map(), characters: 0, reward: null })
      return undefined
    }
    const record = this.open.get(entry.id)
    if (record === undefined) return undefined
    if (entry._tag === "Call") this.addCall(record, entry)
    else if (entry._tag === "Rewarded") record.reward ??= entry.reward
    else if (entry._tag === "Ended") return this.end(record, entry)
    return undefined
  }

  private addCall(record: OpenRecord, { index, call, problem }: Extract<JournalEntry, { _tag: "Call" }>): void {
    this.totals.calls++
    if (problem !== null || call === null || call.incomplete) this.totals.failed++
    if (call === null) return
    const { inputTokens, outputTokens } = call.completion.usage
    this.totals.inputTokens += inputTokens
    this.totals.outputTokens += outputTokens
    const before = record.calls.get(index - 1)
    const messages = sharing(call.messages, before)
    const tools = JSON.stringify(call.tools ?? [])
    const isSame = before?.tools !== undefined && JSON.stringify(before.tools) === tools
    record.calls.set(index, { ...call, messages, ...(isSame ? { tools: before.tools } : {}) })
    const shared = new Set(before?.messages)
    const added =
      sizeOf(messages.filter((message) => !shared.has(message))) +
      (isSame ? 0 : tools.length) +
      JSON.stringify(call.completion).length
    record.characters += added
    this.characters += added
  }

  private end(
    { begun, calls, characters, reward }: OpenRecord,
    { how }: Extract<JournalEntry, { _tag: "Ended" }>,
  ): RecordedSession {
    this.open.delete(begun.id)
    this.characters -= characters
    this.totals.sessions++
    if (reward !== null) {
      this.totals.rewarded++
      this.totals.rewards += reward
    }
    const { id, agent, groupId, tags, samplingSeed } = begun
    const inOrder = [...calls].toSorted(([one], [other]) => one - other).map(([, call]) => call)
    const isComplete = how === "agent" || reward !== null
    return { id, agent, groupId, tags, samplingSeed, calls: inOrder, reward, isComplete }
  }
}
