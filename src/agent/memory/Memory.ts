/**
 * What an agent keeps from episode to episode: entries in the order in which they came, as lines of JSON when they are
 * saved. How entries are found again is each kind's own.
 */
import { type Effect, Schema } from "effect"
import type { AgentError } from "../AgentError.ts"

/** `{ type: "Observation", content: "…" }`; the types are Observation, Action, Feedback, Reflection, or one's own. */
export const MemoryEntry = Schema.Struct({
  type: Schema.String,
  content: Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]),
})
export type MemoryEntry = typeof MemoryEntry.Type

export interface Memory {
  /** `history_list` … */
  readonly type: string
  readonly length: Effect.Effect<number>
  /** Within a read-only view this is a defect. */
  readonly add: (entry: MemoryEntry) => Effect.Effect<void>
  /** What belongs to a prompt: the last `limit` entries (null: all, 0: none), or those nearest to `query`. */
  readonly recall: (about: {
    readonly query: string
    readonly limit: number | null
  }) => Effect.Effect<ReadonlyArray<MemoryEntry>>
  /** Every entry that is held. */
  readonly entries: Effect.Effect<ReadonlyArray<MemoryEntry>>
  /** A line of JSON an entry. */
  readonly snapshot: Effect.Effect<string>
  /** In the place of what is held; bounds stay as they are. A line that is none is an error that says which. */
  readonly restore: (snapshot: string, source: string) => Effect.Effect<void, AgentError>
  /** The same entries, which nobody can add to through it. */
  readonly readOnly: Memory
  /** The same entries in a memory of its own. */
  readonly copy: Effect.Effect<Memory>
}
