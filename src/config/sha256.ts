import { Effect } from "effect"

const hexOf = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")

/** Node's own refuses 2 GiB and more. */
const mostAtOnce = 2 ** 30

/** The SHA-256 of bytes, in hex: by the platform, which has none in a page that was not loaded securely. */
export const sha256 = (bytes: Uint8Array): Effect.Effect<string> => {
  const subtle: typeof crypto.subtle | undefined = crypto.subtle
  return subtle === undefined || bytes.length > mostAtOnce
    ? Effect.sync(() => {
        const hash = new Sha256()
        hash.update(bytes)
        return hash.hex()
      })
    : Effect.map(
        Effect.promise(() => subtle.digest("SHA-256", new Uint8Array(bytes))),
        (digest) => hexOf(new Uint8Array(digest)),
      )
}

/** The first 32 bits of the fractional parts of the `root`th roots of the first primes. */
const primeRoots = (count: number, root: 2 | 3): Int32Array => {
  const primes: Array<number> = []
  for (let number = 2; primes.length < count; number++) {
    if (primes.every((prime) => number % prime !== 0)) primes.push(number)
  }
  // By integers: a float has not bits enough, and no two machines' cube roots need agree.
  return Int32Array.from(primes, (prime) => {
    const power = BigInt(prime) << BigInt(32 * root)
    let low = 0n
    let high = 1n << 40n
    while (high - low > 1n) {
      const middle = (low + high) >> 1n
      if (middle ** BigInt(root) <= power) low = middle
      else high = middle
    }
    return Number(BigInt.asIntN(32, low))
  })
}
const initial = primeRoots(8, 2)
const constants = primeRoots(64, 3)

/**
 * The same for bytes that come in parts, in as much memory as a block of 64 bytes takes. The platform's own, which is
 * faster, has no such form.
 *
 * @example
 * ```ts
 * const hash = new Sha256()
 * for (const chunk of chunks) hash.update(chunk)
 * hash.hex()
 * ```
 */
export class Sha256 {
  readonly #state = initial.slice()
  readonly #block = new Uint8Array(64)
  readonly #view = new DataView(this.#block.buffer)
  readonly #words = new Int32Array(64)
  #size = 0

  /** How many bytes there were so far. */
  get size(): number {
    return this.#size
  }

  update(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const filled = this.#size % 64
      const part = Math.min(64 - filled, bytes.length - at)
      this.#block.set(bytes.subarray(at, at + part), filled)
      this.#size += part
      at += part
      if (filled + part === 64) this.#compress()
    }
  }

  /** The digest of all bytes so far; nothing can follow. */
  hex(): string {
    const bits = BigInt(this.#size) * 8n
    // A one, then zeros until eight bytes are left in the block.
    const padding = new Uint8Array(((119 - (this.#size % 64)) % 64) + 1)
    padding[0] = 0x80
    this.update(padding)
    const length = new DataView(new ArrayBuffer(8))
    length.setBigUint64(0, bits)
    this.update(new Uint8Array(length.buffer))
    const digest = new DataView(new ArrayBuffer(32))
    for (const [index, word] of this.#state.entries()) digest.setInt32(4 * index, word)
    return hexOf(new Uint8Array(digest.buffer))
  }

  #compress(): void {
    const words = this.#words
    const view = this.#view
    for (let index = 0; index < 16; index++) words[index] = view.getInt32(4 * index)
    for (let index = 16; index < 64; index++) {
      const w2 = words[index - 2]
      const w15 = words[index - 15]
      const s0 = ((w15 >>> 7) | (w15 << 25)) ^ ((w15 >>> 18) | (w15 << 14)) ^ (w15 >>> 3)
      const s1 = ((w2 >>> 17) | (w2 << 15)) ^ ((w2 >>> 19) | (w2 << 13)) ^ (w2 >>> 10)
      words[index] = words[index - 16] + s0 + words[index - 7] + s1
    }
    const state = this.#state
    let a = state[0]
    let b = state[1]
    let c = state[2]
    let d = state[3]
    let e = state[4]
    let f = state[5]
    let g = state[6]
    let h = state[7]
    for (let index = 0; index < 64; index++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + constants[index] + words[index]) | 0
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
      h = g
      g = f
      f = e
      e = (d + t1) | 0
      d = c
      c = b
      b = a
      a = (t1 + t2) | 0
    }
    state[0] += a
    state[1] += b
    state[2] += c
    state[3] += d
    state[4] += e
    state[5] += f
    state[6] += g
    state[7] += h
  }
}
