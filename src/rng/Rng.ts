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
 * random.child("noise") // the same as Rng.stream(1, "env", 3, "episode", 17, "noise")
 * ```
 */
import { cosOfTurns, log } from "./Elementary.ts"
import { multiplyHigh, philox } from "./Philox.ts"

/** A string, or a whole number within ±(2⁵³ − 1). `"1"` and `1` are different parts. */
export type PathPart = string | number

/** The stream of that seed (any safe integer) and path. */
export const stream = (seed: number, ...path: ReadonlyArray<PathPart>): Stream => {
  address.fill(0)
  absorbNumber(seed, "seed")
  for (const part of path) absorbPart(part)
  return streamHere()
}

/**
 * How a path becomes an address: 128 bits, from zeros, take in one block of two words after another. A block is the key
 * of a Philox permutation of the address, and the outcome is added to it (Davies and Meyer's construction), so that it
 * can't be run backwards to make two paths meet. A number is one block, its bits as a double; a string is a block with
 * its length, then a block for each four UTF-16 units. Which of the three a block is, its tag says. So different
 * paths are different sequences of blocks, and two of n streams meet with a chance of n² / 2¹²⁹.
 */
const address = new Uint32Array(4)
const tags = { number: 1, length: 2, text: 3 } as const
const mixed = new Uint32Array(4)
const numberBits = new DataView(new ArrayBuffer(8))

const absorb = (tag: number, a: number, b: number): void => {
  philox(address[0] ^ tag, address[1], address[2], address[3], a, b, mixed, 0)
  address[0] ^= mixed[0]
  address[1] ^= mixed[1]
  address[2] ^= mixed[2]
  address[3] ^= mixed[3]
}

const absorbNumber = (value: number, what: string): void => {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${what}: expected a safe integer, found ${value}`)
  // −0 is 0.
  numberBits.setFloat64(0, value + 0)
  absorb(tags.number, numberBits.getUint32(0), numberBits.getUint32(4))
}

const absorbPart = (part: PathPart): void => {
  if (typeof part === "number") return absorbNumber(part, "path")
  absorb(tags.length, part.length, 0)
  for (let at = 0; at < part.length; at += 4) {
    // Past the end charCodeAt gives NaN, which is 0 here; the length above tells the difference.
    const low = (part.charCodeAt(at) & 0xffff) | (part.charCodeAt(at + 1) << 16)
    const high = (part.charCodeAt(at + 2) & 0xffff) | (part.charCodeAt(at + 3) << 16)
    absorb(tags.text, low, high)
  }
}

const streamHere = (): Stream => new Stream(address[0] | 0, address[1] | 0, address[2] | 0, address[3] | 0)

const twoTo32 = 4_294_967_296
const uniformScale = 1 / 16_777_216

/** Box and Muller's normal number from two words. The radius is from (0, 1], so that its logarithm stays finite. */
const gaussian = (radiusWord: number, angleWord: number): number =>
  Math.sqrt(-2 * log((radiusWord + 1) / twoTo32)) * cosOfTurns(angleWord / twoTo32)

/**
 * A sequence of 2⁵³ 32-bit words that is addressed by index, with a cursor for reading it in order. Draws take one word
 * or two, as they say; `integer` and `permutation` take another one, seldom, to stay fair.
 */
export class Stream {
  // The address: key, and upper half of the counter. The lower half counts blocks.
  private readonly key0: number
  private readonly key1: number
  private readonly counter2: number
  private readonly counter3: number
  /** The block that the cursor is in or behind, and how many of its words are drawn. */
  private readonly block = new Uint32Array(4)
  private blockIndex = -1
  private taken = 4

  constructor(key0: number, key1: number, counter2: number, counter3: number) {
    this.key0 = key0
    this.key1 = key1
    this.counter2 = counter2
    this.counter3 = counter3
  }

  /** The index of the word that is drawn next. Set it to go back or to jump. */
  get position(): number {
    return 4 * this.blockIndex + this.taken
  }
  set position(index: number) {
    const blockIndex = Math.floor(checkedIndex(index) / 4)
    this.taken = index - 4 * blockIndex
    if (blockIndex !== this.blockIndex) this.draw(blockIndex)
  }

  /** The stream at a path below this one's, from its start. It does not depend on what was drawn here. */
  child(...path: ReadonlyArray<PathPart>): Stream {
    address[0] = this.key0
    address[1] = this.key1
    address[2] = this.counter2
    address[3] = this.counter3
    for (let at = 0; at < path.length; at++) absorbPart(path[at])
    return streamHere()
  }

  /** Word `index`, without moving the cursor. */
  uint32At(index: number): number {
    const blockIndex = Math.floor(checkedIndex(index) / 4)
    if (blockIndex === this.blockIndex) return this.block[index - 4 * blockIndex]
    this.drawTo(peeked, blockIndex)
    return peeked[index - 4 * blockIndex]
  }

  /** What `uniform` gives at that position, without moving the cursor. */
  uniformAt(index: number): number {
    return (this.uint32At(index) >>> 8) * uniformScale
  }

  /** One word. */
  uint32(): number {
    if (this.taken === 4) {
      this.draw(this.blockIndex + 1)
      this.taken = 0
    }
    return this.block[this.taken++]
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

  /** From `low` up to, not including, `high`. Two words. */
  between(low: number, high: number): number {
    const value = low + (high - low) * this.uniformDouble()
    // Rounding may reach the upper bound.
    return value < high ? value : low
  }

  /** Standard normal, by Box and Muller; at most 6.7 away from 0. Two words. */
  normal(): number {
    const radiusWord = this.uint32()
    return gaussian(radiusWord, this.uint32())
  }

  /** Standard Gumbel, finite. Two words. */
  gumbel(): number {
    const uniform = this.uniformDouble()
    return -log(-log(uniform === 0 ? 5.551115123125783e-17 : uniform))
  }

  /**
   * One of 0 … n − 1, each exactly as likely, for n up to 2³²: the upper word of n times a word (Lemire 2019,
   * arXiv:1805.10941), where the lower word tells the few that would favour some, and are drawn again.
   */
  integer(n: number): number {
    if (!(n >= 1 && n <= twoTo32 && Math.floor(n) === n)) throw new RangeError(`integer: expected 1 to 2³², found ${n}`)
    return n === twoTo32 ? this.uint32() : this.below(n)
  }

  /** An index, each as likely as its share of the sum, which need not be 1: the inverse of their cumulative sum. Two words. */
  categorical(probabilities: ArrayLike<number>): number {
    let total = 0
    for (let index = 0; index < probabilities.length; index++) total += probabilities[index]
    if (!(total > 0 && total < Infinity)) throw new RangeError(`categorical: probabilities add up to ${total}`)
    let left = this.uniformDouble() * total
    let last = 0
    for (let index = 0; index < probabilities.length; index++) {
      if (probabilities[index] > 0) last = index
      left -= probabilities[index]
      if (left < 0) return index
    }
    // Rounding ate the end of it.
    return last
  }

  /** Fills `out` with 0 … n − 1 in a random order (Fisher and Yates' shuffle, inside out). */
  permutation(out: Int32Array): Int32Array {
    for (let index = 0; index < out.length; index++) {
      const other = this.below(index + 1)
      out[index] = out[other]
      out[other] = index
    }
    return out
  }

  /** The numbers that `uniform` gives, one after another. */
  fillUniform(out: Float32Array | Float64Array, start = 0, end = out.length): void {
    checkRange(out, start, end)
    const { block } = this
    let at = start
    for (; at < end && this.taken < 4; at++) out[at] = this.uniform()
    for (; at + 4 <= end; at += 4) {
      this.draw(this.blockIndex + 1)
      out[at] = (block[0] >>> 8) * uniformScale
      out[at + 1] = (block[1] >>> 8) * uniformScale
      out[at + 2] = (block[2] >>> 8) * uniformScale
      out[at + 3] = (block[3] >>> 8) * uniformScale
    }
    for (; at < end; at++) out[at] = this.uniform()
  }

  /** The numbers that `normal` gives, one after another. */
  fillNormal(out: Float32Array | Float64Array, start = 0, end = out.length): void {
    checkRange(out, start, end)
    const { block } = this
    let at = start
    for (; at < end && this.taken < 4 && this.taken % 2 === 0; at++) out[at] = this.normal()
    // From an odd position on, all of them straddle.
    for (; at + 2 <= end && this.taken === 4; at += 2) {
      this.draw(this.blockIndex + 1)
      out[at] = gaussian(block[0], block[1])
      out[at + 1] = gaussian(block[2], block[3])
    }
    for (; at < end; at++) out[at] = this.normal()
  }

  private below(n: number): number {
    let word = this.uint32()
    if (Math.imul(word, n) >>> 0 < n) {
      const unfair = (twoTo32 - n) % n
      while (Math.imul(word, n) >>> 0 < unfair) word = this.uint32()
    }
    return multiplyHigh(word, n) >>> 0
  }

  private draw(blockIndex: number): void {
    this.drawTo(this.block, blockIndex)
    this.blockIndex = blockIndex
  }

  private drawTo(block: Uint32Array, index: number): void {
    philox(index | 0, Math.floor(index / twoTo32), this.counter2, this.counter3, this.key0, this.key1, block, 0)
  }
}

const peeked = new Uint32Array(4)

const checkedIndex = (index: number): number => {
  if (Number.isSafeInteger(index) && index >= 0) return index
  throw new RangeError(`position: expected a whole number from 0 on, found ${index}`)
}

const checkRange = (out: ArrayLike<number>, start: number, end: number): void => {
  if (start >= 0 && start <= end && end <= out.length) return
  throw new RangeError(`fill: ${start} to ${end} is not within 0 to ${out.length}`)
}
