/** Computes which tokens of a vocabulary can follow in a text that an automaton reads. */
import type { Automaton, AutomatonState } from "./Automaton.ts"

/** The tokenizer's methods that the masks need. */
export interface Vocabulary {
  readonly bytesOf: (id: number) => Uint8Array
  readonly special: { readonly ids: ReadonlyMap<string, number> }
}

export class TokenMasks {
  private readonly words: number
  private readonly vocabulary: Vocabulary
  /** The ids of tokens with bytes, in the order of their bytes. */
  private readonly sorted: ReadonlyArray<number>
  private readonly bytes: ReadonlyArray<Uint8Array>
  /** The number of bytes that each token has in common with the one before it. */
  private readonly common: ReadonlyArray<number>

  constructor(vocabulary: Vocabulary, vocabSize: number) {
    this.vocabulary = vocabulary
    this.words = Math.ceil(vocabSize / 32)
    const special = new Set(vocabulary.special.ids.values())
    const tokens = Array.from({ length: vocabSize }, (_, id) => id)
      .filter((id) => !special.has(id))
      .map((id) => ({ id, bytes: vocabulary.bytesOf(id) }))
      .filter(({ bytes }) => bytes.length > 0)
      .sort((a, b) => compareBytes(a.bytes, b.bytes))
    this.sorted = tokens.map(({ id }) => id)
    this.bytes = tokens.map(({ bytes }) => bytes)
    this.common = tokens.map(({ bytes }, at) => (at === 0 ? 0 : commonLength(tokens[at - 1].bytes, bytes)))
  }

  /** Returns the bits of the tokens that can follow in a state. */
  maskOf(automaton: Automaton, state: AutomatonState): Uint32Array {
    if (state.mask !== undefined) return state.mask
    const mask = this.compute(automaton, state)
    if (automaton.keepsMask(mask)) state.mask = mask
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
    const mask = new Uint32Array(this.words)
    /** The states after each number of bytes of the current token. */
    const states: Array<AutomatonState> = [start]
    /** The index of the byte that could not follow. Tokens with the same beginning are skipped. */
    let failedAt = Infinity
    for (let index = 0; index < this.sorted.length; index++) {
      const shared = this.common[index]
      if (shared > failedAt) continue
      failedAt = Infinity
      const bytes = this.bytes[index]
      for (let at = shared; at < bytes.length; at++) {
        const next = automaton.step(states[at], bytes[at])
        if (next === null) {
          failedAt = at
          break
        }
        states[at + 1] = next
      }
      const id = this.sorted[index]
      if (failedAt === Infinity) mask[id >>> 5] |= 1 << (id & 31)
    }
    return mask
  }
}

const compareBytes = (one: Uint8Array, other: Uint8Array): number => {
  const at = commonLength(one, other)
  return at < Math.min(one.length, other.length) ? one[at] - other[at] : one.length - other.length
}

const commonLength = (one: Uint8Array, other: Uint8Array): number => {
  const most = Math.min(one.length, other.length)
  let at = 0
  while (at < most && one[at] === other[at]) at++
  return at
}
