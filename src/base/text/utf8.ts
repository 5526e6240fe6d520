/** Encodes and decodes UTF-8 for all modules. The decoders treat invalid bytes and byte order marks differently. */
const encoder = new TextEncoder()
const lenient = new TextDecoder()
const strict = new TextDecoder("utf-8", { fatal: true })
const exact = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Converts text to UTF-8 bytes and back. */
export const utf8 = {
  encode: (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text),
  /** Decodes bytes, writes � for those that are not UTF-8, and drops a byte order mark. */
  decode: (bytes?: Uint8Array): string => lenient.decode(bytes),
  /** Decodes bytes and drops a byte order mark; throws a TypeError if the bytes are not UTF-8. */
  decodeStrict: (bytes: Uint8Array): string => strict.decode(bytes),
  /**
   * Decodes bytes and keeps a byte order mark, so that the text encodes to the same bytes; throws a TypeError if the
   * bytes are not UTF-8.
   */
  decodeExact: (bytes: Uint8Array): string => exact.decode(bytes),
}
