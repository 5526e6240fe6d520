/**
 * Maps each byte to a printable character and back, as GPT-2's tokenizer does: byte-level vocabularies write the names
 * of their tokens with these characters. Printable ASCII and Latin-1 characters stand for their own bytes; the other
 * bytes get the characters from U+0100 on, in order, so a space is `Ġ`. It only computes.
 */
import { utf8 } from "../text/utf8.ts"

const isPrintable = (byte: number): boolean =>
  (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff)

/** The character of each byte. */
export const byteCharacters: ReadonlyArray<string> = (() => {
  let next = 256
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrintable(byte) ? byte : next++))
})()

const byteOf: ReadonlyMap<string, number> = new Map(byteCharacters.map((character, byte) => [character, byte]))

/** Returns the bytes that the name of a byte-level token stands for. A name with other characters stands for itself. */
export const bytesOfName = (name: string): Uint8Array => {
  const bytes = new Uint8Array(name.length)
  for (let at = 0; at < name.length; at++) {
    const byte = byteOf.get(name[at])
    if (byte === undefined) return utf8.encode(name)
    bytes[at] = byte
  }
  return bytes
}
