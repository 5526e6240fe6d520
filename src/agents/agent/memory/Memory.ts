/**
 * Defines the memory of an agent: a list of entries that lasts for many episodes, and is saved as lines of JSON. The kinds of
 * memory differ in the entries that they keep, and in those that they recall for a prompt.
 *
 * @example
 * ```ts
 * const memory = HistoryList.make({ maxLength: 2 })
 * yield* memory.add({ type: "Observation", content: "A door." })
 * yield* memory.add({ type: "Action", content: "open" })
 * yield* memory.add({ type: "Feedback", content: "It is locked." })
 * const last = yield* memory.recall({ query: "", limit: null }) // the Action and the Feedback
 * ```
 */
import { type Effect, Schema } from "effect"
import type { AgentError } from "../AgentError.ts"

/** An entry has the type Observation, Action, Feedback, Reflection, Note, or one of your own. */
export const MemoryEntry = Schema.Struct({
  type: Schema.String,
  content: Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]),
})
export type MemoryEntry = typeof MemoryEntry.Type

/** Selects the entries for a prompt. */
export interface RecallQuery {
  /** The current observation; some kinds recall the entries that are most similar to it. */
  readonly query: string
  /** The largest number of entries to recall; null recalls all, 0 none. */
  readonly limit: number | null
  /** Selects entries by their type; by default entries of all types are recalled. */
  readonly where?: (type: string) => boolean
  /** Entries to leave out, because the prompt has them already. */
  readonly except?: ReadonlySet<MemoryEntry>
}

export interface AgentMemory {
  /** The `_type` of the memory as in configs, e.g. `history_list`. */
  readonly type: string
  /** Whether `recall` prefers the last entries, or those most similar to the query. */
  readonly recalls: "recent" | "similar"
  /** The number of entries beyond which the oldest is forgotten; null or undefined sets no limit. */
  readonly maxLength?: number | null
  readonly length: Effect.Effect<number>
  /** Adds an entry. Fails if the entry cannot be converted to JSON. A read-only view throws instead (a defect). */
  readonly add: (entry: MemoryEntry) => Effect.Effect<void, AgentError>
  /** Returns at most `limit` entries, oldest first. The array does not change when entries are added. */
  readonly recall: (query: RecallQuery) => Effect.Effect<ReadonlyArray<MemoryEntry>, AgentError>
  /** Returns all entries. */
  readonly entries: Effect.Effect<ReadonlyArray<MemoryEntry>>
  /** Returns the entries as lines of JSON. */
  readonly snapshot: Effect.Effect<string>
  /**
   * Replaces all entries by the entries of a snapshot. If a line is invalid, fails with an error that names the line, and
   * changes nothing.
   */
  readonly restore: (snapshot: string, source: string) => Effect.Effect<void, AgentError>
  /** A view of this memory through which no entries can be added. */
  readonly readOnly: AgentMemory
  /** Makes an independent memory with the same entries. */
  readonly copy: Effect.Effect<AgentMemory>
}
