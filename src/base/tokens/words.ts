/**
 * Makes tokenizers of bytes and words, for the small models that run in this process (`scripted:`, `builtin:`). They
 * need no files. `scratch.ts` writes the files of tokenizers for decoders that are trained from scratch.
 *
 * Id 0 ends a message. Ids 1 to 4 begin a message of the system, the user, the assistant and a tool, in this order. The
 * next 256 ids are the bytes of UTF-8. The remaining ids are words: first each word, then each word with a space before
 * it.
 */
import { utf8 } from "../text/utf8.ts"
import { byteStream, decodeAll } from "./streams.ts"
import type { Tokenizer } from "./Tokenizer.ts"

export const end = 0
export const roles = { system: 1, user: 2, assistant: 3, tool: 4 } as const
const firstByte = 5
export const firstWord = firstByte + 256

const markNames = ["<|end|>", ...Object.keys(roles).map((role) => `<|${role}|>`)]
const special: Tokenizer["special"] = {
  ids: new Map(markNames.map((name, id) => [name, id])),
  bos: null,
  eos: end,
  pad: null,
}

const none = new Uint8Array(0)
const single = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte))
const marks = markNames.map(utf8.encode)

/** Makes a tokenizer with an id for each of these words; other text becomes bytes. Throws on an invalid vocabulary. */
export const words = (vocabulary: ReadonlyArray<string>): Tokenizer => {
  const ids = new Map<string, number>()
  const texts: Array<Uint8Array> = []
  for (const text of [...vocabulary, ...vocabulary.map((word) => ` ${word}`)]) {
    if (/^\s*$|\S\s|\s$|^[^\S ]/.test(text))
      throw new RangeError(`vocabulary: expected a word without whitespace, found "${text}"`)
    if (ids.has(text)) throw new RangeError(`vocabulary: expected different words, found "${text}" twice`)
    ids.set(text, firstWord + texts.length)
    texts.push(utf8.encode(text))
  }
  const bytesOf = (id: number): Uint8Array =>
    (id >= firstByte ? (single[id - firstByte] ?? texts[id - firstWord]) : marks[id]) ?? none
  const decoder: Tokenizer["decoder"] = ({ keepSpecial = false } = {}) =>
    byteStream((id) => (id < firstByte && !keepSpecial ? none : bytesOf(id)))
  return {
    vocabSize: firstWord + texts.length,
    special,
    longestToken: Array.from(ids.keys()).reduce((most, { length }) => Math.max(most, length), 1),
    encode: (text) => {
      const encoded: Array<number> = []
      // A piece is a word with the space before it, or a single character of other whitespace.
      for (const [piece] of text.matchAll(/ ?\S+|\s/gu)) {
        const id = ids.get(piece)
        if (id !== undefined) encoded.push(id)
        else for (const byte of utf8.encode(piece)) encoded.push(firstByte + byte)
      }
      return encoded
    },
    decode: (encoded, options) => decodeAll(decoder(options), encoded),
    decoder,
    bytesOf,
    idOf: (name) => special.ids.get(name) ?? ids.get(name),
  }
}

/** A tokenizer without a vocabulary: each byte of the UTF-8 text is a token. */
export const bytes: Tokenizer = words([])
