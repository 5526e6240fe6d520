/** Groups memory entries into experiences and recalls similar ones, for the memories `bm25` and `embeddings`. */
import { Effect } from "effect"
import type { AgentError } from "../AgentError.ts"
import { entryList } from "./EntryList.ts"
import type { MemoryEntry, RecallQuery } from "./Memory.ts"
import type { MemoryStore } from "./MemoryStore.ts"

/**
 * An experience is an observation with the action and the feedback that followed it. These entries make sense only
 * together, so they are recalled together. Any other entry, such as a reflection, is an experience of its own.
 */
export interface MemoryExperience {
  /** The number of experiences that were added before this one. */
  readonly number: number
  readonly entries: ReadonlyArray<MemoryEntry>
}

/** Ranks experiences by their similarity to a query. The store notifies it of every entry that is added or forgotten. */
export interface Ranking {
  readonly added: (experience: MemoryExperience, entry: MemoryEntry) => void
  readonly forgotten: (experience: MemoryExperience, entry: MemoryEntry) => void
  /** Returns the scores of the experiences that are similar to the query; a higher score is more similar. */
  readonly scores: (
    query: string,
    experiences: ReadonlyArray<MemoryExperience>,
  ) => Effect.Effect<ReadonlyMap<MemoryExperience, number>, AgentError>
}

/**
 * Splits a text into words, for comparing texts: letters and digits in lower case, with normalised accents.
 *
 * @example
 * ```ts
 * words("A door, 3 keys!") // ["a", "door", "3", "keys"]
 * ```
 */
export const words = (text: string): ReadonlyArray<string> =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []

/** Returns the text of an entry, to compare it with other texts. */
export const textOf = ({ content }: MemoryEntry): string =>
  typeof content === "string" ? content : Object.values(content).map(wordsOf).join(" ")

const wordsOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))

const followsObservation = (type: string): boolean => type === "Action" || type === "Feedback"

/** Makes a store that recalls the experiences most similar to the query, and keeps at most `maxLength` entries. */
export const experienceStore = (maxLength: number | null, ranking: () => Ranking): MemoryStore => {
  const list = entryList(maxLength)
  const ranked = ranking()
  let experiences: Array<MemoryExperience & { readonly entries: Array<MemoryEntry> }> = []
  let experienceCount = 0

  /** Removes the oldest entry, which is the first one of the first experience. */
  const forget = (): void => {
    const [oldest] = experiences
    const entry = oldest.entries.shift()
    if (entry !== undefined) ranked.forgotten(oldest, entry)
    if (oldest.entries.length === 0) experiences.shift()
  }

  const add = (entry: MemoryEntry): void => {
    let experience = experiences.at(-1)
    if (experience === undefined || !followsObservation(entry.type)) {
      experience = { number: experienceCount++, entries: [] }
      experiences.push(experience)
    }
    experience.entries.push(entry)
    ranked.added(experience, entry)
    if (list.add(entry) !== undefined) forget()
  }

  const recall = ({
    query,
    limit,
    where,
    except,
  }: RecallQuery): Effect.Effect<ReadonlyArray<MemoryEntry>, AgentError> =>
    Effect.gen(function* () {
      const isWanted = (entry: MemoryEntry): boolean =>
        (where === undefined || where(entry.type)) && except?.has(entry) !== true
      if (limit === null) return list.last(null).filter(isWanted)
      if (limit === 0) return []
      const scores = yield* ranked.scores(query, experiences)
      const best = [...scores].sort(([a, one], [b, other]) => other - one || b.number - a.number)
      const chosen: Array<{ readonly number: number; readonly entries: ReadonlyArray<MemoryEntry> }> = []
      let room = limit
      for (const [{ number, entries }] of best) {
        const wantedEntries = entries.filter(isWanted)
        // Only the best experience is shortened to fit the limit. Other experiences are recalled as a whole or not at all.
        const shown =
          wantedEntries.length <= room ? wantedEntries : chosen.length === 0 ? wantedEntries.slice(0, room) : []
        if (shown.length === 0) continue
        chosen.push({ number, entries: shown })
        room -= shown.length
        if (room === 0) break
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
