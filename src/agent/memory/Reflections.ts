import { Effect } from "effect"
import { entry } from "./entries.ts"
import { entryList } from "./EntryList.ts"
import type { Memory, MemoryEntry } from "./Memory.ts"
import { fromStore, type MemoryStore } from "./MemoryStore.ts"

export const type = "reflections"

export interface ReflectionsOptions {
  /** Of entries that are no reflections; 200 unless given, null: unbounded. */
  readonly maxLength?: number | null
  /** Of reflections; 200 unless given, null: unbounded. */
  readonly maxReflections?: number | null
}

/**
 * The memory that recalls what came last, and never forgets a reflection because of what was only seen or done: those
 * have a bound of their own.
 *
 * @example
 * ```ts
 * const memory = Reflections.make({ maxLength: 60, maxReflections: 20 })
 * ```
 */
export const make = ({ maxLength = 200, maxReflections = 200 }: ReflectionsOptions = {}): Memory =>
  fromStore(type, "recent", store({ maxLength, maxReflections }))

const isReflection = (type: string): boolean => type === "Reflection"

const store = (bounds: Required<ReflectionsOptions>): MemoryStore => {
  const reflections = entryList(bounds.maxReflections)
  const others = entryList(bounds.maxLength)
  /** When each entry came, so that the two lists can be told as one. */
  const order = new WeakMap<MemoryEntry, number>()
  let added = 0
  const when = (entry: MemoryEntry): number => order.get(entry) ?? 0

  const merged = (limit: number | null, where?: (type: string) => boolean): ReadonlyArray<MemoryEntry> => {
    const one = where === undefined || where("Reflection") ? reflections.last(limit) : []
    const two = others.last(limit, where)
    if (one.length === 0) return two
    if (two.length === 0) return one
    // Both are in order already; to sort them would take ten times as long.
    const all: Array<MemoryEntry> = []
    let at = 0
    for (const other of two) {
      while (at < one.length && when(one[at]) < when(other)) all.push(one[at++])
      all.push(other)
    }
    for (; at < one.length; at++) all.push(one[at])
    return limit === null ? all : all.slice(Math.max(0, all.length - limit))
  }

  return {
    maxLength: bounds.maxLength,
    length: () => reflections.length() + others.length(),
    add: (given) => {
      // Who adds the same value twice has two entries.
      const own = order.has(given) ? entry(given.type, given.content) : given
      order.set(own, added++)
      const list = isReflection(own.type) ? reflections : others
      list.add(own)
    },
    recall: ({ limit, where }) => Effect.sync(() => merged(limit, where)),
    entries: () => merged(null),
    clear: () => {
      reflections.clear()
      others.clear()
    },
    another: () => store(bounds),
  }
}
