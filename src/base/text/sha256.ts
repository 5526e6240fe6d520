/** Computes SHA-256 digests, of checkpoints, cached answers, results and so on. It only computes. */
import { sha256 as noble } from "@noble/hashes/sha2.js"
import { bytesToHex } from "@noble/hashes/utils.js"
import { Effect } from "effect"

/** For fewer bytes than this, @noble/hashes is faster than Web Crypto, where each call costs about 30 µs. */
const smallest = 2 ** 12
/** The largest input for Web Crypto, in bytes. Node's Web Crypto refuses inputs of 2 GiB and more. */
const largest = 2 ** 30

/**
 * Returns the SHA-256 of bytes in hex. Large inputs go to Web Crypto, which is four times as fast, if the platform has
 * it. A web page that was not loaded by HTTPS has none.
 */
export const sha256 = (bytes: Uint8Array): Effect.Effect<string> => {
  const subtle: typeof crypto.subtle | undefined = crypto.subtle
  return subtle === undefined || bytes.length < smallest || bytes.length > largest
    ? Effect.sync(() => bytesToHex(noble(bytes)))
    : Effect.map(
        Effect.promise(() => subtle.digest("SHA-256", new Uint8Array(bytes))),
        (digest) => bytesToHex(new Uint8Array(digest)),
      )
}

/** Computes the SHA-256 of bytes that arrive in parts, which Web Crypto cannot do. */
export class Sha256 {
  readonly #hash: ReturnType<typeof noble.create>
  #size = 0

  /** Begins a hash, or continues a copy of `before`, which stays as it is. */
  constructor(before?: Sha256) {
    this.#hash = before === undefined ? noble.create() : before.#hash.clone()
    this.#size = before?.size ?? 0
  }

  /** The number of bytes hashed so far. */
  get size(): number {
    return this.#size
  }

  update(bytes: Uint8Array): void {
    this.#hash.update(bytes)
    this.#size += bytes.length
  }

  /** Returns the digest in hex and ends the computation: a later `update` throws. */
  hex(): string {
    return bytesToHex(this.#hash.digest())
  }
}
