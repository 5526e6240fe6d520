/** Makes the bounded list of memory entries that `HistoryList`, `Reflections` and `experiences.ts` use. */
import type { MemoryEntry } from "./Memory.ts"

/**
 * Makes a list that forgets its oldest entry when it has more than `maxLength` entries (null: no limit). Forgotten entries
 * are removed from the array only when they are more than half of it, and more than 32, so that adding an entry takes
 * constant time on average.
 */
export const entryList = (maxLength: number | null) => {
  let items: Array<MemoryEntry> = []
  /** The index of the oldest entry that is not forgotten. */
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
    /** Adds an entry. Returns the entry that is forgotten for it; undefined if none is. */
    add: (entry: MemoryEntry): MemoryEntry | undefined => {
      items.push(entry)
      return maxLength !== null && items.length - first > maxLength ? forgetFirst() : undefined
    },
    /** Returns the last `limit` entries (null: all) whose type passes the filter, as a new array. */
    last: (limit: number | null, where?: (type: string) => boolean): ReadonlyArray<MemoryEntry> => {
      if (where === undefined) return items.slice(limit === null ? first : Math.max(first, items.length - limit))
      const latest: Array<MemoryEntry> = []
      for (let at = items.length - 1; at >= first && (limit === null || latest.length < limit); at--) {
        if (where(items[at].type)) latest.push(items[at])
      }
      return latest.reverse()
    },
    clear: (): void => {
      items = []
      first = 0
    },
  }
}
