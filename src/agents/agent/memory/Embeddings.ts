/**
 * Converts texts to vectors (embeddings). The vectors of similar texts have similar directions. The default service hashes
 * words: it needs no model, and gives the same vectors on every machine. To use a model, provide the reference `Embeddings`.
 *
 * @example
 * ```ts
 * const [door, gate] = yield* Embeddings.hashing().embed(["a red door", "the red gate"])
 * Embeddings.cosine(door, gate)
 * ```
 *
 * `OpenAiEmbeddings.make` makes a service that asks a model over HTTP.
 */
import { Context, Effect } from "effect"
import type { AgentFailure } from "../Agent.ts"
import { words } from "./experiences.ts"

export interface EmbeddingsService {
  /** Returns a vector for each text. All vectors have the same length, and equal texts always have equal vectors. */
  readonly embed: (texts: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Float32Array>, AgentFailure>
}

/** Hashes a text to 32 bits with FNV-1a, which gives the same result on every machine. */
const hash = (text: string): number => {
  // The first constant is the initial value of FNV-1a, and the second its prime.
  let bits = 0x811c9dc5
  for (let at = 0; at < text.length; at++) bits = Math.imul(bits ^ text.charCodeAt(at), 0x01000193)
  // Mix the bits with a constant of MurmurHash3, because the low bits of FNV-1a are not random enough.
  bits = Math.imul(bits ^ (bits >>> 15), 0x85ebca6b)
  return (bits ^ (bits >>> 13)) >>> 0
}

/**
 * Makes a service that counts words and their trigrams (three letters). A hash chooses the dimension of the vector and
 * the sign with which a word or trigram counts (Weinberger 2009, arXiv:0902.2206).
 */
export const hashing = ({ dimensions = 256 }: { readonly dimensions?: number } = {}): EmbeddingsService => {
  const one = (text: string): Float32Array => {
    const vector = new Float32Array(dimensions)
    const addFeature = (feature: string, weight: number): void => {
      const bits = hash(feature)
      // The lowest bit chooses the sign, and the others the dimension.
      vector[(bits >>> 1) % dimensions] += (bits & 1) === 0 ? weight : -weight
    }
    for (const word of words(text)) {
      addFeature(word, 1)
      // Trigrams make `key` and `keys` similar. Together, all trigrams of a word count less than the word itself.
      const marked = `^${word}$`
      for (let at = 0; at + 3 <= marked.length; at++) addFeature(`3:${marked.slice(at, at + 3)}`, 1 / marked.length)
    }
    return vector
  }
  return { embed: (texts) => Effect.sync(() => texts.map(one)) }
}

/** Returns the cosine similarity of two vectors, from -1 to 1; 0 if one of them is zero. */
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

/** The service that embeds texts for the memories that are made from a config. */
export const Embeddings = Context.Reference<EmbeddingsService>("effect-rl/agent/memory/Embeddings", {
  defaultValue: () => hashing(),
})
