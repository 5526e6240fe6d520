/** Makes the memory `bm25`, which finds earlier entries by the words in them. It needs no model. */
import { Effect } from "effect"
import type { AgentMemory } from "./Memory.ts"
import { fromStore } from "./MemoryStore.ts"
import { type MemoryExperience, experienceStore, type Ranking, textOf, words } from "./experiences.ts"

export const type = "bm25"

export interface Bm25Options {
  /** The number of entries to keep, 1000 by default. If there are more, the oldest is forgotten. null sets no limit. */
  readonly maxLength?: number | null
}

/**
 * Makes the memory that recalls entries which have words in common with the query; rare words count more (Okapi BM25,
 * Robertson and Zaragoza 2009, doi:10.1561/1500000019).
 *
 * @example
 * ```ts
 * const memory = Bm25Memory.make({ maxLength: 500 })
 * const like = yield* memory.recall({ query: "Which key opens the red door?", limit: 9 })
 * ```
 */
export const make = ({ maxLength = 1000 }: Bm25Options = {}): AgentMemory =>
  fromStore(type, "similar", experienceStore(maxLength, ranking))

/**
 * The parameters of Okapi BM25: `k1` sets how much a repeated word counts, and `b` how much the length of a text is
 * penalised.
 */
const k1 = 1.2
const b = 0.75

/**
 * Ranks by BM25. We do not use a library, because a resumed run must recall exactly the same entries as an uninterrupted run.
 * Libraries keep running means as floats, whose rounding depends on forgotten entries; here, all state is integers. An
 * experience is a group of entries that belong together (see experiences.ts).
 */
const ranking = (): Ranking => {
  /** Maps each word to the experiences that contain it, and to its number of occurrences in each. */
  const occurrences = new Map<string, Map<MemoryExperience, number>>()
  /** The number of words in each experience. */
  const lengths = new Map<MemoryExperience, number>()
  /** The number of words in all experiences together. */
  let total = 0

  /** Adds the words of an entry to the counts of its experience (`by` 1), or removes them (`by` -1). */
  const count = (experience: MemoryExperience, all: ReadonlyArray<string>, by: 1 | -1): void => {
    for (const word of all) {
      const places = occurrences.get(word) ?? new Map<MemoryExperience, number>()
      const frequency = (places.get(experience) ?? 0) + by
      if (frequency === 0) places.delete(experience)
      else places.set(experience, frequency)
      if (places.size === 0) occurrences.delete(word)
      else occurrences.set(word, places)
    }
    total += by * all.length
    lengths.set(experience, (lengths.get(experience) ?? 0) + by * all.length)
  }

  return {
    added: (experience, entry) => count(experience, words(textOf(entry)), 1),
    forgotten: (experience, entry) => {
      count(experience, words(textOf(entry)), -1)
      if (experience.entries.length === 0) lengths.delete(experience)
    },
    scores: (query) =>
      Effect.sync(() => {
        const scores = new Map<MemoryExperience, number>()
        const mean = total / lengths.size
        // Sort the words, because the rounding of a sum depends on the order.
        for (const word of [...new Set(words(query))].sort()) {
          const places = occurrences.get(word)
          if (places === undefined) continue
          const rarity = Math.log1p((lengths.size - places.size + 0.5) / (places.size + 0.5))
          for (const [experience, frequency] of places) {
            const length = (lengths.get(experience) ?? 0) / mean
            const weight = (frequency * (k1 + 1)) / (frequency + k1 * (1 - b + b * length))
            scores.set(experience, (scores.get(experience) ?? 0) + rarity * weight)
          }
        }
        return scores
      }),
  }
}
