const encoder = new TextEncoder()
const lenient = new TextDecoder()
const strict = new TextDecoder("utf-8", { fatal: true })
const exact = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * Converts text to UTF-8 bytes and back.
 *
 * @example
 * ```ts
 * utf8.decode(utf8.encode("naïve")) // "naïve"
 * ```
 */
export const utf8 = {
  encode: (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text),
  /** Puts � in the place of bytes that are not UTF-8, and drops a byte order mark. */
  decode: (bytes?: Uint8Array): string => lenient.decode(bytes),
  /** Throws a TypeError for bytes that are not UTF-8, and drops a byte order mark. */
  decodeStrict: (bytes: Uint8Array): string => strict.decode(bytes),
  /** Throws a TypeError for bytes that are not UTF-8, and keeps a byte order mark: the text encodes to the same bytes. */
  decodeExact: (bytes: Uint8Array): string => exact.decode(bytes),
}
