/**
 * Texts as directions in space: the nearer two are, the more alike are the texts. Whoever has a model for it provides
 * one; unless somebody does, words are hashed, which needs no model and gives the same everywhere.
 *
 * @example
 * ```ts
 * const [door, gate] = yield* Embeddings.hashing().embed(["a red door", "the red gate"])
 * Embeddings.cosine(door, gate)
 * ```
 *
 * `OpenAiEmbeddings.make` gives such a service over HTTP.
 */
import { Context, Effect } from "effect"
import type { AgentFailure } from "../Agent.ts"
import { words } from "./words.ts"

export interface EmbeddingsService {
  /** A vector a text, all of one length. The same text has the same vector, always. */
  readonly embed: (texts: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Float32Array>, AgentFailure>
}

/** FNV-1a: the same 32 bits for a text on every machine. */
const hash = (text: string): number => {
  let bits = 0x811c9dc5
  for (let at = 0; at < text.length; at++) bits = Math.imul(bits ^ text.charCodeAt(at), 0x01000193)
  // The low bits alone say little; mix them.
  bits = Math.imul(bits ^ (bits >>> 15), 0x85ebca6b)
  return (bits ^ (bits >>> 13)) >>> 0
}

/**
 * Words and parts of words, each hashed to a place and a sign (Weinberger et al. 2009, arXiv:0902.2206).
 */
export const hashing = ({ dimensions = 256 }: { readonly dimensions?: number } = {}): EmbeddingsService => {
  const one = (text: string): Float32Array => {
    const vector = new Float32Array(dimensions)
    const put = (feature: string, weight: number): void => {
      const bits = hash(feature)
      vector[(bits >>> 1) % dimensions] += (bits & 1) === 0 ? weight : -weight
    }
    for (const word of words(text)) {
      put(word, 1)
      // So `key` and `keys` have something in common.
      const marked = `^${word}$`
      for (let at = 0; at + 3 <= marked.length; at++) put(`3:${marked.slice(at, at + 3)}`, 1 / marked.length)
    }
    return vector
  }
  return { embed: (texts) => Effect.sync(() => texts.map(one)) }
}

/** Between -1 and 1; 0 where one of them says nothing. */
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

/** What memories of a config embed with. */
export const Embeddings = Context.Reference<EmbeddingsService>("effect-rl/agent/memory/Embeddings", {
  defaultValue: () => hashing(),
})
