/** Makes the memory `embeddings`, which finds entries by meaning. The service that it calls may use the network. */
import { Effect } from "effect"
import { singleFlight } from "../../lm/middleware/singleFlight.ts"
import { AgentError } from "../AgentError.ts"
import { cosine, type EmbeddingsService, hashing } from "./Embeddings.ts"
import type { AgentMemory } from "./Memory.ts"
import { fromStore } from "./MemoryStore.ts"
import { type MemoryExperience, experienceStore, type Ranking, textOf } from "./experiences.ts"

export const type = "embeddings"

export interface EmbeddingMemoryOptions {
  /** The number of entries to keep, 1000 by default. If there are more, the oldest is forgotten. null sets no limit. */
  readonly maxLength?: number | null
  /** The service that embeds texts; the default hashes their words. */
  readonly embeddings?: EmbeddingsService
}

/**
 * Makes the memory that recalls entries with a similar meaning, by their embeddings. New texts are embedded at the next
 * query, all in one call.
 *
 * @example
 * ```ts
 * const memory = EmbeddingMemory.make({ embeddings: yield* Embeddings.Embeddings })
 * ```
 */
export const make = ({ maxLength = 1000, embeddings = hashing() }: EmbeddingMemoryOptions = {}): AgentMemory =>
  fromStore(
    type,
    "similar",
    experienceStore(maxLength, () => ranking(embeddings)),
  )

/** Returns the text of an experience that is embedded: its first entry, which is usually an observation, like queries. */
const contentOf = ({ entries }: MemoryExperience): string => textOf(entries[0])

const failed = (problem: string): AgentError => new AgentError({ agent: type, message: `memory "${type}": ${problem}` })

type EmbeddedQuery = { readonly query: string; readonly vector: Float32Array }

/** Ranks experiences (groups of entries, see experiences.ts) by the similarity of their embeddings with the query's. */
const ranking = (embeddings: EmbeddingsService): Ranking => {
  const vectors = new Map<MemoryExperience, Float32Array>()
  const isNew = (experience: MemoryExperience): boolean => !vectors.has(experience)

  const embed = Effect.fnUntraced(function* (texts: ReadonlyArray<string>) {
    const answer = yield* Effect.mapError(embeddings.embed(texts), ({ message }) => failed(message))
    if (answer.length === texts.length && answer.every(({ length }) => length === answer[0].length)) return answer
    const sizes = [...new Set(answer.map(({ length }) => length))].join(", ")
    return yield* failed(`expected ${texts.length} vectors of one length, found ${answer.length} of length ${sizes}`)
  })

  /** Embeds a query together with the new experiences, in one request. Keeps the vectors of the experiences. */
  const embedAll = Effect.fnUntraced(function* (query: string, experiences: ReadonlyArray<MemoryExperience>) {
    const added = experiences.filter(isNew)
    const texts = added.map(contentOf)
    const [vector, ...others] = yield* embed([query, ...texts])
    for (const [at, experience] of added.entries()) {
      // The experience, or its first entry, may have been forgotten while the texts were embedded.
      if (experience.entries.length > 0 && contentOf(experience) === texts[at]) vectors.set(experience, others[at])
    }
    return { query, vector }
  })

  /** Concurrent queries share one request for the embeddings of the new experiences. */
  const once = singleFlight<EmbeddedQuery, AgentError>()

  /**
   * Returns the vector of a query once every experience has a vector, including experiences that are added during the wait.
   */
  const embedded = Effect.fnUntraced(function* (query: string, experiences: ReadonlyArray<MemoryExperience>) {
    let newest: EmbeddedQuery | undefined
    while (experiences.some(isNew)) newest = yield* once("", embedAll(query, experiences))
    if (newest?.query === query) return newest.vector
    const [vector] = yield* embed([query])
    return vector
  })

  return {
    added: () => {},
    forgotten: (experience) => {
      vectors.delete(experience)
    },
    scores: (query, experiences) =>
      Effect.map(embedded(query, experiences), (target) => {
        const scores = new Map<MemoryExperience, number>()
        for (const experience of experiences) {
          const vector = vectors.get(experience)
          const score = vector === undefined ? 0 : cosine(target, vector)
          if (score > 0) scores.set(experience, score)
        }
        return scores
      }),
  }
}
