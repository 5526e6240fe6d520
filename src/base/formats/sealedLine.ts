/**
 * Encodes a value as a line of JSON that ends with its own SHA-256 (its seal), so that a reader detects a changed line. The
 * journals of unfinished runs have such lines.
 *
 * @example `sealed({ a: 1 })` is `{"a":1,"sha256":"015abd7f…"}`.
 */
import { Sha256 } from "../text/sha256.ts"
import { utf8 } from "../text/utf8.ts"

/** Matches the seal: the key `sha256` at the end of a line, with the hash of the line without the seal. */
const seal = /,"sha256":"([0-9a-f]{64})"\}$/
const sealLength = `,"sha256":"${"0".repeat(64)}"}`.length

const closingBrace = "}".charCodeAt(0)

/** Returns the SHA-256 in hex digits. It must be synchronous: waiting here could change the order of the lines. */
const digestOf = (bytes: Uint8Array): string => {
  const hash = new Sha256()
  hash.update(bytes)
  return hash.hex()
}

/** Encodes an object as a line, without its line feed. The digest is the last key, `sha256`. */
export const sealed = (value: object): string => {
  const text = JSON.stringify(value)
  return `${text.slice(0, -1)},"sha256":"${digestOf(utf8.encode(text))}"}`
}

/** Returns a line without its seal; undefined if the line was changed after it was written. */
export const unsealed = (line: Uint8Array): Uint8Array | undefined => {
  const [, digest] = seal.exec(utf8.decode(line.subarray(-sealLength))) ?? []
  // Keep the first byte of the seal, and make it the closing brace that the seal replaced.
  const bytes = line.slice(0, 1 - sealLength)
  bytes[bytes.length - 1] = closingBrace
  return digest === digestOf(bytes) ? bytes : undefined
}
