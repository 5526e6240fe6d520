import { cos, log } from "./Elementary.ts"
import { philox } from "./Philox.ts"

/**
 * Randomness with addresses. A stream is named by a seed and a path, and its draw i can be had without the draws before
 * it: so a checkpoint stores no generator state, and no result depends on who drew first.
 *
 * @example
 * ```ts
 * import { Rng } from "effect-rl"
 *
 * const random = Rng.stream(1, "env", 3, "episode", 17)
 * random.uniform() // in [0, 1)
 * random.uint32At(1_000_000) // no need to draw the million before
 * ```
 */
export type PathPart = string | number

/** The stream of that seed and path. `"1"` and `1` are different parts. */
export const stream = (seed: number, ...path: ReadonlyArray<PathPart>): Stream => {
  const address = new Uint32Array(4)
  absorbNumber(address, seed)
  for (const part of path) absorbPart(address, part)
  return new Stream(address)
}

const scratch = new Uint32Array(4)
const numberBits = new DataView(new ArrayBuffer(8))

/** Mixes a tagged pair of words into an address: one Philox block, keyed by the words, over what was there. */
const absorb = (address: Uint32Array, tag: number, a: number, b: number): void => {
  philox(address[0] ^ tag, address[1], address[2], address[3], a, b, scratch, 0)
  // Fed forward, so that it can't be run backwards to make two paths meet.
  for (let word = 0; word < 4; word++) address[word] ^= scratch[word]
}

const absorbNumber = (address: Uint32Array, value: number): void => {
  numberBits.setFloat64(0, value === 0 ? 0 : value)
  absorb(address, 1, numberBits.getUint32(0), numberBits.getUint32(4))
}

const absorbPart = (address: Uint32Array, part: PathPart): void => {
  if (typeof part === "number") return absorbNumber(address, part)
  absorb(address, 2, part.length, 0)
  for (let at = 0; at < part.length; at += 4) {
    // Past the end charCodeAt gives NaN, which is 0 here; the length above tells the difference.
    const low = (part.charCodeAt(at) & 0xffff) | (part.charCodeAt(at + 1) << 16)
    const high = (part.charCodeAt(at + 2) & 0xffff) | (part.charCodeAt(at + 3) << 16)
    absorb(address, 3, low, high)
  }
}

const uniformScale = 1 / 16_777_216
const tau = 6.283185307179586

/** A sequence of 32-bit words that is addressed by index, with a cursor for reading it in order. */
export class Stream {
  /** Two words of key, two of the counter; the other two count blocks. */
  private readonly address: Uint32Array
  private readonly block = new Uint32Array(4)
  private blockIndex = -1
  private cursor = 0

  constructor(address: Uint32Array) {
    this.address = address
  }

  /** The index of the word that is drawn next. Set it to go back or to jump. */
  get position(): number {
    return this.cursor
  }
  set position(index: number) {
    this.cursor = index
  }

  /** The stream at a path below this one's. */
  child(...path: ReadonlyArray<PathPart>): Stream {
    const address = this.address.slice()
    for (const part of path) absorbPart(address, part)
    return new Stream(address)
  }

  /** Word `index`, without moving the cursor. */
  uint32At(index: number): number {
    const blockIndex = Math.floor(index / 4)
    if (blockIndex !== this.blockIndex) {
      const { address } = this
      philox(blockIndex | 0, Math.floor(blockIndex / 4_294_967_296), address[2], address[3], address[0], address[1], this.block, 0)
      this.blockIndex = blockIndex
    }
    return this.block[index % 4]
  }

  /** What `uniform` gives at a position. */
  uniformAt(index: number): number {
    return (this.uint32At(index) >>> 8) * uniformScale
  }

  /** One word. */
  uint32(): number {
    return this.uint32At(this.cursor++)
  }

  /** In [0, 1), a multiple of 2⁻²⁴: exact in float32, so never rounded up to 1. One word. */
  uniform(): number {
    return (this.uint32() >>> 8) * uniformScale
  }

  /** In [0, 1), with all 53 bits. Two words. */
  uniformDouble(): number {
    const high = this.uint32() >>> 5
    const low = this.uint32() >>> 6
    return (high * 67_108_864 + low) / 9_007_199_254_740_992
  }

  /** From `low` up to `high`. Two words. */
  between(low: number, high: number): number {
    return low + (high - low) * this.uniformDouble()
  }

  /** Standard normal, by Box and Muller. Two words. */
  normal(): number {
    // (0, 1]: the logarithm stays finite.
    const radius = Math.sqrt(-2 * log(((this.uint32() >>> 0) + 1) / 4_294_967_296))
    return radius * cos((tau * (this.uint32() >>> 0)) / 4_294_967_296)
  }

  /** One of 0 … n − 1, each exactly as likely: words that would favour some are drawn again. */
  integer(n: number): number {
    const fair = 4_294_967_296 - (4_294_967_296 % n)
    let word = this.uint32()
    while (word >= fair) word = this.uint32()
    return word % n
  }

  /** An index, by the inverse of the cumulative probabilities, which need not sum to exactly 1. */
  categorical(probabilities: ArrayLike<number>): number {
    let total = 0
    for (let index = 0; index < probabilities.length; index++) total += probabilities[index]
    let left = this.uniformDouble() * total
    for (let index = 0; index < probabilities.length; index++) {
      left -= probabilities[index]
      if (left < 0) return index
    }
    // Rounding ate the last of it: the last that is possible at all.
    for (let index = probabilities.length - 1; index > 0; index--) if (probabilities[index] > 0) return index
    return 0
  }

  /** Standard Gumbel. Two words. */
  gumbel(): number {
    return -log(-log((this.uniformDouble() * 9_007_199_254_740_991 + 0.5) / 9_007_199_254_740_992))
  }

  /** Fills `out` with 0 … n − 1 in a random order. */
  permutation(out: Int32Array): Int32Array {
    for (let index = 0; index < out.length; index++) {
      const other = this.integer(index + 1)
      out[index] = out[other]
      out[other] = index
    }
    return out
  }

  /** The same numbers as `uniform`, one after another. */
  fillUniform(out: Float32Array | Float64Array, start = 0, end = out.length): void {
    for (let index = start; index < end; index++) out[index] = (this.uint32At(this.cursor++) >>> 8) * uniformScale
  }

  /** The same numbers as `normal`, one after another. */
  fillNormal(out: Float32Array | Float64Array, start = 0, end = out.length): void {
    for (let index = start; index < end; index++) out[index] = this.normal()
  }
}

