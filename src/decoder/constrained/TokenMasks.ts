/** Computes which tokens of a vocabulary can follow in a text that an automaton reads. */
import type { Automaton } from "./Automaton.ts"
import type { AutomatonState } from "./AutomatonState.ts"

/** The tokenizer's methods that the masks need. */
export interface Vocabulary {
  readonly bytesOf: (id: number) => Uint8Array
  readonly special: { readonly ids: ReadonlyMap<string, number> }
}

export class TokenMasks {
  private readonly words: number
  private readonly vocabulary: Vocabulary
  /** The ids of tokens with bytes, in the order of their bytes. */
  private readonly sorted: Int32Array
  /** The bytes of these tokens, one after the other, and the index after the last byte of each. */
  private readonly bytes: Uint8Array
  private readonly ends: Int32Array
  /** The number of bytes that each token has in common with the one before it. */
  private readonly common: Int32Array

  constructor(vocabulary: Vocabulary, vocabSize: number) {
    this.vocabulary = vocabulary
    this.words = Math.ceil(vocabSize / 32)
    const special = new Set(vocabulary.special.ids.values())
    const tokens = Array.from({ length: vocabSize }, (_, id) => id)
      .filter((id) => !special.has(id))
      .map((id) => ({ id, text: latin1Of(vocabulary.bytesOf(id)) }))
      .filter(({ text }) => text.length > 0)
      .sort((one, other) => compareTexts(one.text, other.text))
    this.sorted = Int32Array.from(tokens, ({ id }) => id)
    const size = tokens.reduce((sum, { text }) => sum + text.length, 0)
    this.bytes = new Uint8Array(size)
    this.ends = new Int32Array(tokens.length)
    this.common = new Int32Array(tokens.length)
    let end = 0
    for (const [at, { text }] of tokens.entries()) {
      if (at > 0) this.common[at] = commonLength(tokens[at - 1].text, text)
      for (let index = 0; index < text.length; index++) this.bytes[end++] = text.charCodeAt(index)
      this.ends[at] = end
    }
  }

  /** Returns the bits of the tokens that can follow in a state. */
  maskOf(automaton: Automaton, state: AutomatonState): Uint32Array {
    automaton.beginToken()
    if (state.mask !== undefined) return state.mask
    automaton.kept.makeRoom()
    const mask = this.compute(automaton, state)
    if (automaton.kept.keeps(mask.byteLength)) state.mask = mask
    return mask
  }

  /** Returns the state after a token; null if it cannot follow. */
  after(automaton: Automaton, state: AutomatonState, id: number): AutomatonState | null {
    let at: AutomatonState | null = state
    for (const byte of this.vocabulary.bytesOf(id)) {
      if (at === null) return null
      at = automaton.step(at, byte)
    }
    return at
  }

  private compute(automaton: Automaton, start: AutomatonState): Uint32Array {
    const { sorted, bytes, ends, common } = this
    const mask = new Uint32Array(this.words)
    /** The states after each number of bytes of the current token. */
    const states: Array<AutomatonState> = [start]
    /** The index of the byte that could not follow. Tokens with the same beginning are skipped. */
    let failedAt = Infinity
    let begin = 0
    for (let index = 0; index < sorted.length; index++) {
      const first = begin
      begin = ends[index]
      const shared = common[index]
      if (shared > failedAt) continue
      failedAt = Infinity
      const length = begin - first
      for (let at = shared; at < length; at++) {
        const next = automaton.step(states[at], bytes[first + at])
        if (next === null) {
          failedAt = at
          break
        }
        states[at + 1] = next
      }
      const id = sorted[index]
      if (failedAt === Infinity) mask[id >>> 5] |= 1 << (id & 31)
    }
    return mask
  }
}

/** Returns a text with one character for each byte, because texts are compared faster than arrays. */
const latin1Of = (bytes: Uint8Array): string => {
  let text = ""
  for (const byte of bytes) text += String.fromCharCode(byte)
  return text
}

const compareTexts = (one: string, other: string): number => {
  if (one === other) return 0
  return one < other ? -1 : 1
}

const commonLength = (one: string, other: string): number => {
  const most = Math.min(one.length, other.length)
  let at = 0
  while (at < most && one.charCodeAt(at) === other.charCodeAt(at)) at++
  return at
}
