/**
 * What an agent keeps from episode to episode: entries in the order in which they came, as lines of JSON when they are
 * saved. How entries are found again is each kind's own.
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

/** `{ type: "Observation", content: "…" }`; the types are Observation, Action, Feedback, Reflection, or one's own. */
export const MemoryEntry = Schema.Struct({
  type: Schema.String,
  content: Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]),
})
export type MemoryEntry = typeof MemoryEntry.Type

/** What belongs to a prompt. */
export interface About {
  /** What is to be answered: kinds that look for what is similar go by it. */
  readonly query: string
  /** Null: all, 0: none. */
  readonly limit: number | null
  /** Only entries of these types count. */
  readonly where?: (type: string) => boolean
  /** Those that the prompt holds anyway. */
  readonly except?: ReadonlySet<MemoryEntry>
}

export interface Memory {
  /** `history_list` … */
  readonly type: string
  /** What `recall` prefers: the last entries, or those nearest to the query. */
  readonly recalls: "recent" | "similar"
  /** Past it the oldest entry is forgotten (reflections may have a bound of their own); null, or left out: never. */
  readonly maxLength?: number | null
  readonly length: Effect.Effect<number>
  /** Within a read-only view this is a defect. It fails where the entry can't be kept as JSON. */
  readonly add: (entry: MemoryEntry) => Effect.Effect<void, AgentError>
  /** At most `limit` entries, oldest first, as they are now: what is added later doesn't change what was given. */
  readonly recall: (about: About) => Effect.Effect<ReadonlyArray<MemoryEntry>, AgentError>
  /** Every entry that is held. */
  readonly entries: Effect.Effect<ReadonlyArray<MemoryEntry>>
  /** A line of JSON an entry. */
  readonly snapshot: Effect.Effect<string>
  /**
   * In the place of what is held; bounds stay as they are. A line that is none is an error that says which, and then
   * what was held still is.
   */
  readonly restore: (snapshot: string, source: string) => Effect.Effect<void, AgentError>
  /** The same entries, which nobody can add to through it. */
  readonly readOnly: Memory
  /** The same entries in a memory of its own, which can be added to. */
  readonly copy: Effect.Effect<Memory>
}
