/**
 * Computes the random number function Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2,
 * 3"): a block of four 32-bit words from a 64-bit key and a 128-bit counter. It has no state. `Rng.ts` calls it.
 *
 * @example
 * ```ts
 * const block = new Uint32Array(4)
 * philox(0, 0, 0, 0, 0, 0, block, 0)
 * block[0].toString(16) // "6627e8d5", as published
 * ```
 */

// The constants of the paper: the multipliers, and the increments of the key after each round.
const multiplier0 = 0xd2511f53
const multiplier1 = 0xcd9e8d57
const weyl0 = 0x9e3779b9
const weyl1 = 0xbb67ae85

/**
 * Computes the high word of a 32 × 32 bit product, as a signed integer. It multiplies halves of words, because a double
 * cannot hold the whole product. (Multiplying halves by `Math.imul` was slower.)
 */
export const multiplyHigh = (a: number, b: number): number => {
  const aLow = a & 0xffff
  const aHigh = a >>> 16
  const bLow = b & 0xffff
  const bHigh = b >>> 16
  const low = aLow * bLow
  const middle = aHigh * bLow + (low >>> 16)
  const carry = aLow * bHigh + (middle & 0xffff)
  return (aHigh * bHigh + (middle >>> 16) + (carry >>> 16)) | 0
}

/** Writes the block for the counter c0 to c3 (lowest word first) and the key k0, k1 to `out`, from index `at` on. */
export const philox = (
  c0: number,
  c1: number,
  c2: number,
  c3: number,
  k0: number,
  k1: number,
  out: Uint32Array,
  at: number,
): void => {
  for (let round = 0; round < 10; round++) {
    const high0 = multiplyHigh(multiplier0, c0)
    const low0 = Math.imul(multiplier0, c0)
    const high1 = multiplyHigh(multiplier1, c2)
    const low1 = Math.imul(multiplier1, c2)
    c0 = high1 ^ c1 ^ k0
    c1 = low1
    c2 = high0 ^ c3 ^ k1
    c3 = low0
    k0 = (k0 + weyl0) | 0
    k1 = (k1 + weyl1) | 0
  }
  out[at] = c0
  out[at + 1] = c1
  out[at + 2] = c2
  out[at + 3] = c3
}

/**
 * Writes to `out` the two blocks for the counter c0 to c3 and for the counter after it; c0 must be even. It is faster than
 * two calls of `philox`, because a processor computes the two blocks, which do not need each other, at the same time.
 */
export const philoxPair = (
  c0: number,
  c1: number,
  c2: number,
  c3: number,
  k0: number,
  k1: number,
  out: Uint32Array,
): void => {
  let d0 = c0 + 1
  let d1 = c1
  let d2 = c2
  let d3 = c3
  for (let round = 0; round < 10; round++) {
    const cHigh0 = multiplyHigh(multiplier0, c0)
    const cLow0 = Math.imul(multiplier0, c0)
    const cHigh1 = multiplyHigh(multiplier1, c2)
    const cLow1 = Math.imul(multiplier1, c2)
    const dHigh0 = multiplyHigh(multiplier0, d0)
    const dLow0 = Math.imul(multiplier0, d0)
    const dHigh1 = multiplyHigh(multiplier1, d2)
    const dLow1 = Math.imul(multiplier1, d2)
    c0 = cHigh1 ^ c1 ^ k0
    c1 = cLow1
    c2 = cHigh0 ^ c3 ^ k1
    c3 = cLow0
    d0 = dHigh1 ^ d1 ^ k0
    d1 = dLow1
    d2 = dHigh0 ^ d3 ^ k1
    d3 = dLow0
    k0 = (k0 + weyl0) | 0
    k1 = (k1 + weyl1) | 0
  }
  out[0] = c0
  out[1] = c1
  out[2] = c2
  out[3] = c3
  out[4] = d0
  out[5] = d1
  out[6] = d2
  out[7] = d3
}
