/**
 * Generates random numbers that have addresses. A stream is a sequence of random 32-bit words; a seed and a path
 * identify it, and its i-th word can be computed without the words before it. So a checkpoint stores no generator
 * state, and no result depends on the order in which streams are used.
 *
 * @example
 * ```ts
 * import { Rng } from "effect-rl"
 *
 * const random = Rng.stream(1, "env", 3, "episode", 17)
 * random.uniform() // in [0, 1)
 * random.uint32At(1_000_000) // computed without the million draws before it
 * random.child("noise") // the same as Rng.stream(1, "env", 3, "episode", 17, "noise")
 * ```
 */
import { cosOfTurns, log } from "./Elementary.ts"
import { multiplyHigh, philox, philoxPair } from "./Philox.ts"

/** A part of a path: a string, or an integer within ±(2⁵³ − 1). `"1"` and `1` are different parts. */
export type PathPart = string | number

/** Returns the stream of a seed (any safe integer) and a path, at its start. */
export const stream = (seed: number, ...path: ReadonlyArray<PathPart>): Stream => {
  address.fill(0)
  absorbNumber(seed, "seed")
  for (const part of path) absorbPart(part)
  return streamHere()
}

/**
 * Holds the address of a stream while it is computed: a hash of the seed and the path, of 128 bits. It starts as zeros,
 * and `absorb` mixes in one block of two words after another. A number is one block: its bits as a double. A string is
 * a block with its length, then a block for each four UTF-16 units. Tags mark blocks of numbers, lengths and texts, so
 * different paths are different sequences of blocks. Two of n streams have the same address with probability n² / 2¹²⁹.
 */
const address = new Uint32Array(4)
const tags = { number: 1, length: 2, text: 3 } as const
const mixed = new Uint32Array(4)
const numberBits = new DataView(new ArrayBuffer(8))

/**
 * Mixes a block (a, b) into the address: Philox permutes the address with the block as its key, and the result is XORed
 * with the old address (the Davies-Meyer construction), so that nobody can compute backwards to a path.
 */
const absorb = (tag: number, a: number, b: number): void => {
  philox(address[0] ^ tag, address[1], address[2], address[3], a, b, mixed, 0)
  address[0] ^= mixed[0]
  address[1] ^= mixed[1]
  address[2] ^= mixed[2]
  address[3] ^= mixed[3]
}

const absorbNumber = (value: number, what: string): void => {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${what}: expected a safe integer, found ${value}`)
  // Adding 0 turns −0 into 0.
  numberBits.setFloat64(0, value + 0)
  absorb(tags.number, numberBits.getUint32(0), numberBits.getUint32(4))
}

const absorbPart = (part: PathPart): void => {
  if (typeof part === "number") return absorbNumber(part, "path")
  absorb(tags.length, part.length, 0)
  for (let at = 0; at < part.length; at += 4) {
    // Beyond the end, charCodeAt returns NaN, which becomes 0; the block with the length tells "a" and "a\0" apart.
    const low = (part.charCodeAt(at) & 0xffff) | (part.charCodeAt(at + 1) << 16)
    const high = (part.charCodeAt(at + 2) & 0xffff) | (part.charCodeAt(at + 3) << 16)
    absorb(tags.text, low, high)
  }
}

/** Returns the stream whose address is in `address`. */
const streamHere = (): Stream => new Stream(address[0] | 0, address[1] | 0, address[2] | 0, address[3] | 0)

/** Makes a number in [0, 1) with 53 random bits of two random words. */
const doubleOf = (highWord: number, lowWord: number): number =>
  ((highWord >>> 5) * 67_108_864 + (lowWord >>> 6)) / 9_007_199_254_740_992

const twoTo32 = 4_294_967_296
const uniformScale = 1 / 16_777_216

/**
 * Computes a standard normal number from two random words (Box and Muller). The first becomes a number in (0, 1], whose
 * logarithm is finite.
 */
const gaussian = (radiusWord: number, angleWord: number): number =>
  Math.sqrt(-2 * log((radiusWord + 1) / twoTo32)) * cosOfTurns(angleWord / twoTo32)

/**
 * A sequence of 2⁵³ 32-bit words that is addressed by index, with a cursor that reads it in order. Each draw takes one word
 * or two, as its doc comment says; `integer` and `permutation` sometimes take a further word, to avoid a bias.
 */
export class Stream {
  // The stream's address: Philox's key, and the upper half of Philox's counter, whose lower half counts the blocks.
  private readonly key0: number
  private readonly key1: number
  private readonly counter2: number
  private readonly counter3: number
  /** The eight words of the two blocks at the cursor, and (`taken`) how many of them are already drawn. */
  private readonly pair = new Uint32Array(8)
  private pairIndex = -1
  private taken = 8

  constructor(key0: number, key1: number, counter2: number, counter3: number) {
    this.key0 = key0
    this.key1 = key1
    this.counter2 = counter2
    this.counter3 = counter3
  }

  /** The index of the next word. Set it to jump to another position. */
  get position(): number {
    return 8 * this.pairIndex + this.taken
  }
  set position(index: number) {
    const pairIndex = Math.floor(checkedIndex(index) / 8)
    if (pairIndex !== this.pairIndex) this.draw(pairIndex)
    this.taken = index - 8 * pairIndex
  }

  /** Returns the stream at a path below this one's, at its start. It does not depend on the draws from this stream. */
  child(...path: ReadonlyArray<PathPart>): Stream {
    address[0] = this.key0
    address[1] = this.key1
    address[2] = this.counter2
    address[3] = this.counter3
    for (let at = 0; at < path.length; at++) absorbPart(path[at])
    return streamHere()
  }

  /** Returns what `child(part).uniformDouble()` would draw. It makes no object, so it suits one draw from each of many. */
  childUniformDouble(part: PathPart): number {
    address[0] = this.key0
    address[1] = this.key1
    address[2] = this.counter2
    address[3] = this.counter3
    absorbPart(part)
    philox(0, 0, address[2], address[3], address[0], address[1], peeked, 0)
    return doubleOf(peeked[0], peeked[1])
  }

  /** Returns the word at an index, without moving the cursor. */
  uint32At(index: number): number {
    const block = Math.floor(checkedIndex(index) / 4)
    const { counter2, counter3, key0, key1 } = this
    philox(block | 0, Math.floor(block / twoTo32), counter2, counter3, key0, key1, peeked, 0)
    return peeked[index - 4 * block]
  }

  /** Returns the number that `uniform` would draw at the position `index`, without moving the cursor. */
  uniformAt(index: number): number {
    return (this.uint32At(index) >>> 8) * uniformScale
  }

  /** Draws a 32-bit word. It takes one word. */
  uint32(): number {
    if (this.taken === 8) this.draw(this.pairIndex + 1)
    return this.pair[this.taken++]
  }

  /** Draws from [0, 1), in multiples of 2⁻²⁴: these are exact in float32, so none rounds up to 1. It takes one word. */
  uniform(): number {
    return (this.uint32() >>> 8) * uniformScale
  }

  /** Draws from [0, 1) with 53 random bits. It takes two words. */
  uniformDouble(): number {
    const highWord = this.uint32()
    return doubleOf(highWord, this.uint32())
  }

  /** Draws from `low` up to, but not including, `high`. It takes two words. */
  between(low: number, high: number): number {
    const value = low + (high - low) * this.uniformDouble()
    // Rounding can reach the upper bound.
    return value < high ? value : low
  }

  /** Draws a standard normal number (Box and Muller), which is at most 6.7 away from 0. It takes two words. */
  normal(): number {
    const radiusWord = this.uint32()
    return gaussian(radiusWord, this.uint32())
  }

  /** Draws a standard Gumbel number, which is always finite. It takes two words. */
  gumbel(): number {
    const uniform = this.uniformDouble()
    // 0 has no logarithm: 2⁻⁵⁴, half of the smallest positive draw, replaces it.
    return -log(-log(uniform === 0 ? 5.551115123125783e-17 : uniform))
  }

  /**
   * Draws one of 0 … n − 1, each with exactly the same probability, for n up to 2³². The result is the upper word of n
   * times a random word (Lemire 2019, arXiv:1805.10941); the lower word identifies the few draws that would cause a bias,
   * which are repeated.
   */
  integer(n: number): number {
    if (!(n >= 1 && n <= twoTo32 && Math.floor(n) === n)) throw new RangeError(`integer: expected 1 to 2³², found ${n}`)
    return n === twoTo32 ? this.uint32() : this.below(n)
  }

  /** Draws an index with a probability in proportion to its number; the numbers need not add up to 1. It takes two words. */
  categorical(probabilities: ArrayLike<number>): number {
    let total = 0
    for (let index = 0; index < probabilities.length; index++) total += probabilities[index]
    if (!(total > 0 && total < Infinity))
      throw new RangeError(`categorical: expected probabilities with a positive, finite sum, found ${total}`)
    let left = this.uniformDouble() * total
    let last = 0
    for (let index = 0; index < probabilities.length; index++) {
      if (probabilities[index] > 0) last = index
      left -= probabilities[index]
      if (left < 0) return index
    }
    // Rounding made the sum smaller than the draw.
    return last
  }

  /** Fills `out`, of length n, with 0 … n − 1 in a random order (inside-out Fisher-Yates shuffle), and returns it. */
  permutation(out: Int32Array): Int32Array {
    const { pair } = this
    for (let index = 0; index < out.length; index++) {
      const n = index + 1
      if (this.taken === 8) this.draw(this.pairIndex + 1)
      const word = pair[this.taken]
      // `below` would draw the same, but slower: it is called only for the few words that could cause a bias.
      const isFair = Math.imul(word, n) >>> 0 >= n
      const other = isFair ? multiplyHigh(word, n) >>> 0 : this.below(n)
      if (isFair) this.taken++
      out[index] = out[other]
      out[other] = index
    }
    return out
  }

  /** Fills `out` from index `start` to `end` − 1 with the numbers that `uniform` would draw, only faster. */
  fillUniform(out: Float32Array | Float64Array, start = 0, end = out.length): void {
    checkRange(out, start, end)
    const { pair } = this
    let at = start
    for (; at < end && this.taken < 8; at++) out[at] = this.uniform()
    for (; at + 8 <= end; at += 8) {
      this.draw(this.pairIndex + 1)
      for (let word = 0; word < 8; word++) out[at + word] = (pair[word] >>> 8) * uniformScale
      this.taken = 8
    }
    for (; at < end; at++) out[at] = this.uniform()
  }

  /** Fills `out` from index `start` to `end` − 1 with the numbers that `normal` would draw, only faster. */
  fillNormal(out: Float32Array | Float64Array, start = 0, end = out.length): void {
    checkRange(out, start, end)
    const { pair } = this
    let at = start
    for (; at < end && this.taken < 8 && this.taken % 2 === 0; at++) out[at] = this.normal()
    // At an odd position, a number's two words can lie in two pairs: the last loop then draws one number at a time.
    for (; at + 4 <= end && this.taken === 8; at += 4) {
      this.draw(this.pairIndex + 1)
      for (let word = 0; word < 4; word++) out[at + word] = gaussian(pair[2 * word], pair[2 * word + 1])
      this.taken = 8
    }
    for (; at < end; at++) out[at] = this.normal()
  }

  /** Draws an integer from 0 to n − 1, for n below 2³², as `integer` describes. */
  private below(n: number): number {
    let word = this.uint32()
    if (Math.imul(word, n) >>> 0 < n) {
      const unfair = (twoTo32 - n) % n
      while (Math.imul(word, n) >>> 0 < unfair) word = this.uint32()
    }
    return multiplyHigh(word, n) >>> 0
  }

  /** Computes a pair of blocks, and moves the cursor to its first word. */
  private draw(pairIndex: number): void {
    const block = 2 * pairIndex
    const { counter2, counter3, key0, key1 } = this
    philoxPair(block | 0, Math.floor(block / twoTo32), counter2, counter3, key0, key1, this.pair)
    this.pairIndex = pairIndex
    this.taken = 0
  }
}

/** The block that `uint32At` and `childUniformDouble` read, so that a stream's own blocks do not change. */
const peeked = new Uint32Array(4)

const checkedIndex = (index: number): number => {
  if (Number.isSafeInteger(index) && index >= 0) return index
  throw new RangeError(`position: expected an integer from 0 on, found ${index}`)
}

const checkRange = (out: ArrayLike<number>, start: number, end: number): void => {
  if (start >= 0 && start <= end && end <= out.length) return
  throw new RangeError(`fill: expected a range within 0 to ${out.length}, found ${start} to ${end}`)
}
