import { Effect } from "effect"
import type { Memory } from "./Memory.ts"
import { fromStore } from "./MemoryStore.ts"
import { type Moment, momentStore, type Ranking, textOf } from "./moments.ts"
import { words } from "./words.ts"

export const type = "bm25"

export interface Options {
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
export const make = ({ maxLength = 1000 }: Options = {}): Memory =>
  fromStore(type, "similar", momentStore(maxLength, ranking))

/** How much a word counts that is said again, and how much long texts are held against themselves. */
const k1 = 1.2
const b = 0.75

/**
 * Ours, and no library's: what a resumed run recalls must be, to the bit, what a run recalls that was never stopped.
 * Libraries keep running means as floats, which remember what was forgotten; here only integers are kept.
 */
const ranking = (): Ranking => {
  /** How often each word is said in each moment. */
  const said = new Map<string, Map<Moment, number>>()
  /** Words in each moment. */
  const lengths = new Map<Moment, number>()
  let total = 0

  const count = (moment: Moment, all: ReadonlyArray<string>, by: 1 | -1): void => {
    for (const word of all) {
      const places = said.get(word) ?? new Map<Moment, number>()
      const often = (places.get(moment) ?? 0) + by
      if (often === 0) places.delete(moment)
      else places.set(moment, often)
      if (places.size === 0) said.delete(word)
      else said.set(word, places)
    }
    total += by * all.length
    lengths.set(moment, (lengths.get(moment) ?? 0) + by * all.length)
  }

  return {
    added: (moment, entry) => count(moment, words(textOf(entry)), 1),
    forgotten: (moment, entry) => {
      count(moment, words(textOf(entry)), -1)
      if (moment.entries.length === 0) lengths.delete(moment)
    },
    scores: (query) =>
      Effect.sync(() => {
        const scores = new Map<Moment, number>()
        const mean = total / lengths.size
        // In one order, whatever order they are asked in: sums of floats depend on it.
        for (const word of [...new Set(words(query))].sort()) {
          const places = said.get(word)
          if (places === undefined) continue
          const rarity = Math.log1p((lengths.size - places.size + 0.5) / (places.size + 0.5))
          for (const [moment, often] of places) {
            const length = (lengths.get(moment) ?? 0) / mean
            const weight = (often * (k1 + 1)) / (often + k1 * (1 - b + b * length))
            scores.set(moment, (scores.get(moment) ?? 0) + rarity * weight)
          }
        }
        return scores
      }),
  }
}
