import { Effect } from "effect"
import { display } from "../../config/Config.ts"
import { AgentError } from "../AgentError.ts"
import { fromLines, holding, toLines } from "./entries.ts"
import type { About, Memory, MemoryEntry } from "./Memory.ts"

/** What a kind of memory is made of: where entries are, and how they are found again. */
export interface MemoryStore {
  /** Null: unbounded. */
  readonly maxLength: number | null
  readonly length: () => number
  readonly add: (entry: MemoryEntry) => void
  /** What a snapshot of this kind can hold; all entries unless given. */
  readonly accepts?: (entry: MemoryEntry) => boolean
  readonly recall: (about: About) => Effect.Effect<ReadonlyArray<MemoryEntry>, AgentError>
  readonly entries: () => ReadonlyArray<MemoryEntry>
  readonly clear: () => void
  /** An empty one with the same bounds. */
  readonly another: () => MemoryStore
}

const readOnlyDefect = (type: string, what: string): Effect.Effect<never> =>
  Effect.die(new Error(`memory "${type}" is read-only here, but ${what}; only agents in training write`))

/** A memory from its store: what all kinds have in common. */
export const fromStore = (type: string, recalls: Memory["recalls"], store: MemoryStore): Memory => {
  const reading = {
    type,
    recalls,
    maxLength: store.maxLength,
    length: Effect.sync(store.length),
    recall: store.recall,
    entries: Effect.sync(store.entries),
    snapshot: Effect.sync(() => toLines(store.entries())),
    copy: Effect.sync((): Memory => {
      const other = store.another()
      store.entries().forEach(other.add)
      return fromStore(type, recalls, other)
    }),
  }
  const readOnly: Memory = {
    ...reading,
    add: (entry) => readOnlyDefect(type, `a ${entry.type} was to be added`),
    restore: (_, source) => readOnlyDefect(type, `${source} was to be restored`),
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
          const message = `${source}:${wrong + 1}: a memory of the kind "${type}" holds no ${entries[wrong].type} like ${display(entries[wrong].content)}`
          return Effect.fail(new AgentError({ agent: type, message }))
        }
        store.clear()
        entries.forEach(store.add)
        return Effect.void
      }),
    readOnly,
  }
}
