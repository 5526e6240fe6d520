/** Collects what a gateway records of its sessions, and counts it. The live gateway and the journal of an earlier one feed it. */
import { jsonLength } from "../../../base/text/jsonFacts.ts"
import type { ModelCall } from "../../agent/Agent.ts"
import type { ChatMessage } from "../../lm/Chat.ts"
import { sizeOf } from "../KeptAnswers.ts"
import { sameJson, SharedItems } from "../SharedItems.ts"
import type { JournalEntry, PromptStart, SessionBegun } from "./journal.ts"
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
  /** The latest prompts, with the indices of their calls. */
  readonly prompts: SharedItems<ChatMessage>
  /** The number of characters in memory. */
  characters: number
  reward: number | null
}

/** The result of an entry. */
interface AddedEntry {
  /** The session that the entry has ended, of which nothing is kept. */
  readonly ended?: RecordedSession
  /** The beginning that the prompt of the entry's call shares with an earlier call of the session. */
  readonly start?: PromptStart
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

  /** Adds an entry. */
  add(entry: JournalEntry): AddedEntry {
    if (entry._tag === "Begun") {
      const prompts = new SharedItems<ChatMessage>()
      this.open.set(entry.id, { begun: entry, calls: new Map(), prompts, characters: 0, reward: null })
      return {}
    }
    const record = this.open.get(entry.id)
    if (record === undefined) return {}
    if (entry._tag === "Call") return this.addCall(record, entry)
    if (entry._tag === "Rewarded") record.reward ??= entry.reward
    else if (entry._tag === "Ended") return { ended: this.end(record, entry) }
    return {}
  }

  private addCall(record: OpenRecord, { index, call, problem }: Extract<JournalEntry, { _tag: "Call" }>): AddedEntry {
    this.totals.calls++
    if (problem !== null || call === null || call.incomplete) this.totals.failed++
    if (call === null) return {}
    const { inputTokens, outputTokens } = call.completion.usage
    this.totals.inputTokens += inputTokens
    this.totals.outputTokens += outputTokens
    const { items: messages, start } = record.prompts.share(call.messages, index)
    const before = start === null ? undefined : record.calls.get(start.list)
    // Each message is in memory once, and not once for each call.
    const hasSameTools = before?.tools !== undefined && sameJson(before.tools, call.tools)
    record.calls.set(index, { ...call, messages, ...(hasSameTools ? { tools: before.tools } : {}) })
    const tools = hasSameTools ? 0 : (call.tools ?? []).reduce((sum, tool) => sum + jsonLength(tool), 0)
    const added = sizeOf(messages.slice(start?.length ?? 0)) + tools + jsonLength(call.completion)
    record.characters += added
    this.characters += added
    return start === null ? {} : { start: { call: start.list, messages: start.length, tools: hasSameTools } }
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
