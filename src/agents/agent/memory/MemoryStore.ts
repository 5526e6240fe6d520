/**
 * Makes a memory from a store of its entries, so that all kinds of memory share checks, snapshots, copies and read-only
 * views.
 */
import { Effect } from "effect"
import { display } from "../../../base/config/Config.ts"
import { AgentError } from "../AgentError.ts"
import { fromLines, holding, toLines } from "./entries.ts"
import type { AgentMemory, MemoryEntry, RecallQuery } from "./Memory.ts"

/** The part of a memory that differs between kinds: it keeps the entries, and recalls some of them. */
export interface MemoryStore {
  readonly maxLength: number | null
  readonly length: () => number
  readonly add: (entry: MemoryEntry) => void
  /** Tells whether this kind of memory keeps an entry; by default it keeps all. */
  readonly accepts?: (entry: MemoryEntry) => boolean
  readonly recall: (query: RecallQuery) => Effect.Effect<ReadonlyArray<MemoryEntry>, AgentError>
  readonly entries: () => ReadonlyArray<MemoryEntry>
  readonly clear: () => void
  /** Makes an empty store of the same kind with the same limits. */
  readonly another: () => MemoryStore
}

const readOnlyDefect = (type: string, problem: string): Effect.Effect<never> =>
  Effect.die(new Error(`memory "${type}": ${problem}, but it is read-only outside of training`))

/** Makes a memory that keeps its entries in `store`; `recalls` decides which entries the store prefers to recall. */
export const fromStore = (type: string, recalls: AgentMemory["recalls"], store: MemoryStore): AgentMemory => {
  const reading = {
    type,
    recalls,
    maxLength: store.maxLength,
    length: Effect.sync(store.length),
    recall: store.recall,
    entries: Effect.sync(store.entries),
    snapshot: Effect.sync(() => toLines(store.entries())),
    copy: Effect.sync((): AgentMemory => {
      const other = store.another()
      store.entries().forEach(other.add)
      return fromStore(type, recalls, other)
    }),
  }
  const readOnly: AgentMemory = {
    ...reading,
    add: (entry) => readOnlyDefect(type, `cannot add a ${entry.type}`),
    restore: (_, source) => readOnlyDefect(type, `cannot restore ${source}`),
    get readOnly() {
      return readOnly
    },
  }
  return {
    ...reading,
    add: (entry) => Effect.map(holding(type, entry), store.add),
    restore: (snapshot, source) =>
      Effect.flatMap(fromLines(type, snapshot, source), (entries) => {
        const wrong = entries.findIndex((entry) => store.accepts?.(entry) === false)
        if (wrong >= 0) {
          const message = `${source}:${wrong + 1}: a memory of type "${type}" cannot hold the ${entries[wrong].type} ${display(entries[wrong].content)}`
          return Effect.fail(new AgentError({ agent: type, message }))
        }
        store.clear()
        entries.forEach(store.add)
        return Effect.void
      }),
    readOnly,
  }
}
