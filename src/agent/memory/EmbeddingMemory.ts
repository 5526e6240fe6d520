import { Effect } from "effect"
import { AgentError } from "../AgentError.ts"
import { cosine, type EmbeddingsService, hashing } from "./Embeddings.ts"
import type { Memory } from "./Memory.ts"
import { fromStore } from "./MemoryStore.ts"
import { type Moment, momentStore, type Ranking, textOf } from "./moments.ts"

export const type = "embeddings"

export interface Options {
  /** Of entries; past it the oldest is forgotten. 1000 unless given, null: unbounded. */
  readonly maxLength?: number | null
  /** Words are hashed unless given. */
  readonly embeddings?: EmbeddingsService
}

/**
 * The memory that recalls what means the same, as far as its embeddings know. Texts are embedded when something is
 * first looked for after they came, all in one go.
 *
 * @example
 * ```ts
 * const memory = EmbeddingMemory.make({ embeddings: yield* Embeddings })
 * ```
 */
export const make = ({ maxLength = 1000, embeddings = hashing() }: Options = {}): Memory =>
  fromStore(
    type,
    "similar",
    momentStore(maxLength, () => ranking(embeddings)),
  )

/** Queries are what is seen, so they are compared with what was seen: what a moment begins with. */
const contentOf = ({ entries }: Moment): string => textOf(entries[0])

const failed = (what: string): AgentError => new AgentError({ agent: type, message: `memory "${type}": ${what}` })

const ranking = (embeddings: EmbeddingsService): Ranking => {
  const vectors = new Map<Moment, Float32Array>()
  return {
    added: () => {},
    forgotten: (moment) => {
      vectors.delete(moment)
    },
    scores: (query, moments) =>
      Effect.gen(function* () {
        const missing = moments.filter((moment) => !vectors.has(moment))
        const texts = [query, ...missing.map(contentOf)]
        const made = yield* Effect.mapError(embeddings.embed(texts), ({ message }) => failed(message))
        if (made.length !== texts.length || made.some(({ length }) => length !== made[0].length)) {
          const sizes = [...new Set(made.map(({ length }) => length))].join(", ")
          return yield* failed(
            `expected ${texts.length} vectors of one length, found ${made.length} of length ${sizes}`,
          )
        }
        const [asked, ...others] = made
        for (const [at, moment] of missing.entries()) vectors.set(moment, others[at])
        const scores = new Map<Moment, number>()
        for (const moment of moments) {
          const vector = vectors.get(moment)
          const score = vector === undefined ? 0 : cosine(asked, vector)
          if (score > 0) scores.set(moment, score)
        }
        return scores
      }),
  }
}
