/** Makes the memory `history_list`, which keeps and recalls an agent's last entries. */
import { Effect } from "effect"
import { entryList } from "./EntryList.ts"
import type { AgentMemory } from "./Memory.ts"
import { fromStore, type MemoryStore } from "./MemoryStore.ts"

export const type = "history_list"

/**
 * Makes the memory that recalls the last entries.
 *
 * @example
 * ```ts
 * const memory = HistoryList.make({ maxLength: 100 })
 * ```
 */
export const make = (options: { readonly maxLength?: number | null } = {}): AgentMemory =>
  fromStore(type, "recent", store(options.maxLength === undefined ? 100 : options.maxLength))

const store = (maxLength: number | null): MemoryStore => {
  const list = entryList(maxLength)
  return {
    maxLength,
    length: list.length,
    add: (entry) => {
      list.add(entry)
    },
    recall: ({ limit, where }) => Effect.sync(() => list.last(limit, where)),
    entries: () => list.last(null),
    clear: list.clear,
    another: () => store(maxLength),
  }
}
