/**
 * Embeddings of texts as vectors: the more similar two texts are, the closer are the directions of their vectors. The
 * default hashes words, which needs no model and gives the same vectors on every machine; provide `Embeddings` to use a
 * model.
 *
 * @example
 * ```ts
 * const [door, gate] = yield* Embeddings.hashing().embed(["a red door", "the red gate"])
 * Embeddings.cosine(door, gate)
 * ```
 *
 * `OpenAiEmbeddings.make` makes such a service over HTTP.
 */
import { Context, Effect } from "effect"
import type { AgentFailure } from "../Agent.ts"
import { words } from "./experiences.ts"

export interface EmbeddingsService {
  /** Gives a vector for each text, all of the same length. Equal texts must always have equal vectors. */
  readonly embed: (texts: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Float32Array>, AgentFailure>
}

/** Hashes a text to 32 bits by FNV-1a, which is the same on every machine. */
const hash = (text: string): number => {
  let bits = 0x811c9dc5
  for (let at = 0; at < text.length; at++) bits = Math.imul(bits ^ text.charCodeAt(at), 0x01000193)
  // Mix the bits, since the low bits of FNV-1a are not random enough.
  bits = Math.imul(bits ^ (bits >>> 15), 0x85ebca6b)
  return (bits ^ (bits >>> 13)) >>> 0
}

/** Makes embeddings that hash words and their trigrams to a dimension and a sign (Weinberger et al. 2009, arXiv:0902.2206). */
export const hashing = ({ dimensions = 256 }: { readonly dimensions?: number } = {}): EmbeddingsService => {
  const one = (text: string): Float32Array => {
    const vector = new Float32Array(dimensions)
    const put = (feature: string, weight: number): void => {
      const bits = hash(feature)
      vector[(bits >>> 1) % dimensions] += (bits & 1) === 0 ? weight : -weight
    }
    for (const word of words(text)) {
      put(word, 1)
      // Trigrams make `key` and `keys` similar.
      const marked = `^${word}$`
      for (let at = 0; at + 3 <= marked.length; at++) put(`3:${marked.slice(at, at + 3)}`, 1 / marked.length)
    }
    return vector
  }
  return { embed: (texts) => Effect.sync(() => texts.map(one)) }
}

/** Gives the cosine similarity of two vectors, from -1 to 1; 0 if one of them is zero. */
export const cosine = (a: Float32Array, b: Float32Array): number => {
  let dot = 0
  let one = 0
  let other = 0
  for (let at = 0; at < a.length; at++) {
    dot += a[at] * b[at]
    one += a[at] * a[at]
    other += b[at] * b[at]
  }
  return one === 0 || other === 0 ? 0 : dot / Math.sqrt(one * other)
}

/** The embeddings of memories that are made from a config. */
export const Embeddings = Context.Reference<EmbeddingsService>("effect-rl/agent/memory/Embeddings", {
  defaultValue: () => hashing(),
})
