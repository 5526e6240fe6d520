import type { MemoryEntry } from "./Memory.ts"

/**
 * Entries in their order; past `maxLength` (null: never) the oldest is forgotten. What is forgotten is skipped over and
 * cleared away seldom, so an addition costs the same however many there are.
 */
export interface EntryList {
  readonly length: () => number
  /** Gives what was forgotten for it. */
  readonly add: (entry: MemoryEntry) => MemoryEntry | undefined
  /** The last `limit` of those whose type will do, as a new array; null: all of them. */
  readonly last: (limit: number | null, where?: (type: string) => boolean) => ReadonlyArray<MemoryEntry>
  readonly clear: () => void
}

export const entryList = (maxLength: number | null): EntryList => {
  let items: Array<MemoryEntry> = []
  let first = 0

  const forgetFirst = (): MemoryEntry => {
    const forgotten = items[first]
    first++
    if (first > 32 && 2 * first > items.length) {
      items = items.slice(first)
      first = 0
    }
    return forgotten
  }

  return {
    length: () => items.length - first,
    add: (entry) => {
      items.push(entry)
      return maxLength !== null && items.length - first > maxLength ? forgetFirst() : undefined
    },
    last: (limit, where) => {
      if (where === undefined) return items.slice(limit === null ? first : Math.max(first, items.length - limit))
      const found: Array<MemoryEntry> = []
      for (let at = items.length - 1; at >= first && (limit === null || found.length < limit); at--) {
        if (where(items[at].type)) found.push(items[at])
      }
      return found.reverse()
    },
    clear: () => {
      items = []
      first = 0
    },
  }
}
