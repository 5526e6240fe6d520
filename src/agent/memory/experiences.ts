import { Effect } from "effect"
import type { AgentError } from "../AgentError.ts"
import { entryList } from "./EntryList.ts"
import type { About, MemoryEntry } from "./Memory.ts"
import type { MemoryStore } from "./MemoryStore.ts"

/**
 * What was seen, and what was done and told about it: entries that only together say something, so they are found and
 * shown together. A reflection is a experience of its own.
 */
export interface Experience {
  /** How many came before it. */
  readonly number: number
  readonly entries: ReadonlyArray<MemoryEntry>
}

/** How experiences are found: told of all that comes and goes, and asked how near each is to a query. */
export interface Ranking {
  readonly added: (experience: Experience, entry: MemoryEntry) => void
  readonly forgotten: (experience: Experience, entry: MemoryEntry) => void
  /** Only those that have something to do with the query; more is nearer. */
  readonly scores: (
    query: string,
    experiences: ReadonlyArray<Experience>,
  ) => Effect.Effect<ReadonlyMap<Experience, number>, AgentError>
}

/** What an entry says, for comparing it with others. */
export const textOf = ({ content }: MemoryEntry): string =>
  typeof content === "string" ? content : Object.values(content).map(wordsOf).join(" ")

const wordsOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))

const belongsToTheLast = (type: string): boolean => type === "Action" || type === "Feedback"

/** A store that recalls experiences by how near they are to what is asked; past `maxLength` the oldest entry is forgotten. */
export const experienceStore = (maxLength: number | null, ranking: () => Ranking): MemoryStore => {
  const list = entryList(maxLength)
  const ranked = ranking()
  let experiences: Array<Experience & { readonly entries: Array<MemoryEntry> }> = []
  let began = 0

  const forget = (): void => {
    const [oldest] = experiences
    const entry = oldest.entries.shift()
    if (entry !== undefined) ranked.forgotten(oldest, entry)
    if (oldest.entries.length === 0) experiences.shift()
  }

  const add = (entry: MemoryEntry): void => {
    let experience = experiences.at(-1)
    if (experience === undefined || !belongsToTheLast(entry.type)) {
      experience = { number: began++, entries: [] }
      experiences.push(experience)
    }
    experience.entries.push(entry)
    ranked.added(experience, entry)
    if (list.add(entry) !== undefined) forget()
  }

  const recall = ({ query, limit, where, except }: About): Effect.Effect<ReadonlyArray<MemoryEntry>, AgentError> =>
    Effect.gen(function* () {
      const counts = (entry: MemoryEntry): boolean =>
        (where === undefined || where(entry.type)) && except?.has(entry) !== true
      if (limit === null) return list.last(null).filter(counts)
      if (limit === 0) return []
      const scores = yield* ranked.scores(query, experiences)
      const best = [...scores].sort(([a, one], [b, other]) => other - one || b.number - a.number)
      const chosen: Array<{ readonly number: number; readonly entries: ReadonlyArray<MemoryEntry> }> = []
      let left = limit
      for (const [{ number, entries }] of best) {
        const counting = entries.filter(counts)
        // The best one is cut to what there is room for; others are there as a whole, or not at all.
        const shown = counting.length <= left ? counting : chosen.length === 0 ? counting.slice(0, left) : []
        if (shown.length === 0) continue
        chosen.push({ number, entries: shown })
        left -= shown.length
        if (left === 0) break
      }
      return chosen.sort((a, b) => a.number - b.number).flatMap(({ entries }) => entries)
    })

  return {
    maxLength,
    length: list.length,
    add,
    recall,
    entries: () => list.last(null),
    clear: () => {
      while (experiences.length > 0) forget()
      experiences = []
      list.clear()
    },
    another: () => experienceStore(maxLength, ranking),
  }
}
