import { Effect } from "effect"
import { together } from "../../lm/middleware/together.ts"
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
 * const memory = EmbeddingMemory.make({ embeddings: yield* Embeddings.Embeddings })
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
  const isNew = (moment: Moment): boolean => !vectors.has(moment)

  const embed = Effect.fnUntraced(function* (
    texts: ReadonlyArray<string>,
  ): Effect.fn.Return<ReadonlyArray<Float32Array>, AgentError> {
    const made = yield* Effect.mapError(embeddings.embed(texts), ({ message }) => failed(message))
    if (made.length === texts.length && made.every(({ length }) => length === made[0].length)) return made
    const sizes = [...new Set(made.map(({ length }) => length))].join(", ")
    return yield* failed(`expected ${texts.length} vectors of one length, found ${made.length} of length ${sizes}`)
  })

  /** Along with what is new. */
  const embedAll = Effect.fnUntraced(function* (query: string, moments: ReadonlyArray<Moment>) {
    const added = moments.filter(isNew)
    const texts = added.map(contentOf)
    const [vector, ...others] = yield* embed([query, ...texts])
    for (const [at, moment] of added.entries()) {
      // It may be forgotten by now, or begin with something else.
      if (moment.entries.length > 0 && contentOf(moment) === texts[at]) vectors.set(moment, others[at])
    }
    return { query, vector }
  })

  /** Many may look at the same time: one of them has what is new embedded for all. */
  const once = together<{ readonly query: string; readonly vector: Float32Array }, AgentError>()

  const embedded = Effect.fnUntraced(function* (query: string, moments: ReadonlyArray<Moment>) {
    let made: { readonly query: string; readonly vector: Float32Array } | undefined
    while (moments.some(isNew)) made = yield* once("", embedAll(query, moments))
    if (made?.query === query) return made.vector
    const [vector] = yield* embed([query])
    return vector
  })

  return {
    added: () => {},
    forgotten: (moment) => {
      vectors.delete(moment)
    },
    scores: (query, moments) =>
      Effect.map(embedded(query, moments), (asked) => {
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
