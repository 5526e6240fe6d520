/** Makes the memory `reflections`, which recalls the last entries and has a separate limit for reflections. */
import { Effect } from "effect"
import { entry } from "./entries.ts"
import { entryList } from "./EntryList.ts"
import type { AgentMemory, MemoryEntry } from "./Memory.ts"
import { fromStore, type MemoryStore } from "./MemoryStore.ts"

export const type = "reflections"

export interface ReflectionsOptions {
  /** The number of entries, without reflections, to keep, 200 by default; null sets no limit. */
  readonly maxLength?: number | null
  /** The number of reflections to keep, 200 by default; null sets no limit. */
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
export const make = ({ maxLength = 200, maxReflections = 200 }: ReflectionsOptions = {}): AgentMemory =>
  fromStore(type, "recent", store({ maxLength, maxReflections }))

const isReflection = (type: string): boolean => type === "Reflection"

const store = (bounds: Required<ReflectionsOptions>): MemoryStore => {
  const reflections = entryList(bounds.maxReflections)
  const others = entryList(bounds.maxLength)
  /** Maps each entry to the number of entries that were added before it. `merged` sorts the entries of both lists by it. */
  const order = new WeakMap<MemoryEntry, number>()
  let added = 0
  const positionOf = (entry: MemoryEntry): number => order.get(entry) ?? 0

  /** Returns the last entries of both lists, in the order in which they were added. */
  const merged = (limit: number | null, where?: (type: string) => boolean): ReadonlyArray<MemoryEntry> => {
    const lastReflections = where === undefined || where("Reflection") ? reflections.last(limit) : []
    const lastOthers = others.last(limit, where)
    if (lastReflections.length === 0) return lastOthers
    if (lastOthers.length === 0) return lastReflections
    // Merge the sorted lists; sorting would take ten times as long.
    const all: Array<MemoryEntry> = []
    let at = 0
    for (const other of lastOthers) {
      while (at < lastReflections.length && positionOf(lastReflections[at]) < positionOf(other))
        all.push(lastReflections[at++])
      all.push(other)
    }
    for (; at < lastReflections.length; at++) all.push(lastReflections[at])
    return limit === null ? all : all.slice(Math.max(0, all.length - limit))
  }

  return {
    maxLength: bounds.maxLength,
    length: () => reflections.length() + others.length(),
    add: (value) => {
      // If the same object is added a second time, add a copy, because `order` has one number per object.
      const stored = order.has(value) ? entry(value.type, value.content) : value
      order.set(stored, added++)
      const list = isReflection(stored.type) ? reflections : others
      list.add(stored)
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
