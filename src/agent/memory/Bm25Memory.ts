import { Effect } from "effect"
import type { Memory } from "./Memory.ts"
import { fromStore } from "./MemoryStore.ts"
import { type Experience, experienceStore, type Ranking, textOf } from "./experiences.ts"
import { words } from "./words.ts"

export const type = "bm25"

export interface Bm25Options {
  /** Of entries; past it the oldest is forgotten. 1000 unless given, null: unbounded. */
  readonly maxLength?: number | null
}

/**
 * The memory that recalls what shares words with the query, rare words before common ones: Okapi BM25 (Robertson and
 * Zaragoza 2009, doi:10.1561/1500000019).
 *
 * @example
 * ```ts
 * const memory = Bm25Memory.make({ maxLength: 500 })
 * const like = yield* memory.recall({ query: "Which key opens the red door?", limit: 9 })
 * ```
 */
export const make = ({ maxLength = 1000 }: Bm25Options = {}): Memory =>
  fromStore(type, "similar", experienceStore(maxLength, ranking))

/** How much a word counts that is said again, and how much long texts are held against themselves. */
const k1 = 1.2
const b = 0.75

/**
 * Ours, and no library's: what a resumed run recalls must be, to the bit, what a run recalls that was never stopped.
 * Libraries keep running means as floats, which remember what was forgotten; here only integers are kept.
 */
const ranking = (): Ranking => {
  /** How often each word is said in each experience. */
  const said = new Map<string, Map<Experience, number>>()
  /** Words in each experience. */
  const lengths = new Map<Experience, number>()
  let total = 0

  const count = (experience: Experience, all: ReadonlyArray<string>, by: 1 | -1): void => {
    for (const word of all) {
      const places = said.get(word) ?? new Map<Experience, number>()
      const often = (places.get(experience) ?? 0) + by
      if (often === 0) places.delete(experience)
      else places.set(experience, often)
      if (places.size === 0) said.delete(word)
      else said.set(word, places)
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
        const scores = new Map<Experience, number>()
        const mean = total / lengths.size
        // In one order, whatever order they are asked in: sums of floats depend on it.
        for (const word of [...new Set(words(query))].sort()) {
          const places = said.get(word)
          if (places === undefined) continue
          const rarity = Math.log1p((lengths.size - places.size + 0.5) / (places.size + 0.5))
          for (const [experience, often] of places) {
            const length = (lengths.get(experience) ?? 0) / mean
            const weight = (often * (k1 + 1)) / (often + k1 * (1 - b + b * length))
            scores.set(experience, (scores.get(experience) ?? 0) + rarity * weight)
          }
        }
        return scores
      }),
  }
}
