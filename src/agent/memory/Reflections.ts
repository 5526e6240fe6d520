import { Effect } from "effect"
import { entry } from "./entries.ts"
import { entryList } from "./EntryList.ts"
import type { Memory, MemoryEntry } from "./Memory.ts"
import { fromStore, type MemoryStore } from "./MemoryStore.ts"

export const type = "reflections"

export interface ReflectionsOptions {
  /** The number of entries other than reflections that are kept, 200 by default; null sets no limit. */
  readonly maxLength?: number | null
  /** The number of reflections that are kept, 200 by default; null sets no limit. */
  readonly maxReflections?: number | null
}

/**
 * Makes the memory that recalls the last entries, and has a separate limit for reflections, so that many observations
 * and actions do not make it forget reflections.
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
  /** The position at which each entry was added, by which the two lists are merged. */
  const order = new WeakMap<MemoryEntry, number>()
  let added = 0
  const positionOf = (entry: MemoryEntry): number => order.get(entry) ?? 0

  const merged = (limit: number | null, where?: (type: string) => boolean): ReadonlyArray<MemoryEntry> => {
    const one = where === undefined || where("Reflection") ? reflections.last(limit) : []
    const two = others.last(limit, where)
    if (one.length === 0) return two
    if (two.length === 0) return one
    // Merge the sorted lists; sorting would take ten times as long.
    const all: Array<MemoryEntry> = []
    let at = 0
    for (const other of two) {
      while (at < one.length && positionOf(one[at]) < positionOf(other)) all.push(one[at++])
      all.push(other)
    }
    for (; at < one.length; at++) all.push(one[at])
    return limit === null ? all : all.slice(Math.max(0, all.length - limit))
  }

  return {
    maxLength: bounds.maxLength,
    length: () => reflections.length() + others.length(),
    add: (value) => {
      // Copy an entry that was added before, so that it has two positions.
      const own = order.has(value) ? entry(value.type, value.content) : value
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
