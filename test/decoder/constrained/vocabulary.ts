/** A small vocabulary: all bytes, texts of several bytes that JSON has, and an end token. */
import { AnswerFormats } from "../../../src/decoder/constrained/AnswerFormats.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const encoder = new TextEncoder()
const texts = [
  '{"',
  '":',
  '": "',
  '", "',
  '"}',
  "true",
  "é",
  "ab",
  "\n  ",
  "12",
  "null",
  "]}",
  "},",
  ' "',
  '\\"',
  "\\u00",
  "a",
]
export const eos = 256 + texts.length
export const vocabSize = eos + 2

const bytes = [
  ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
  ...texts.map((text) => encoder.encode(text)),
]

export const vocabulary = {
  bytesOf: (id: number) => bytes[id] ?? encoder.encode(id === eos ? "<eos>" : ""),
  special: { ids: new Map([["<eos>", eos]]) },
  decoder: () => {
    const decoder = new TextDecoder()
    return {
      push: (id: number) => decoder.decode(bytes[id] ?? new Uint8Array(), { stream: true }),
      end: () => decoder.decode(),
    }
  },
}

const closing = new Set(['"', "}", "]", '"}', "]}"].map((text) => [...encoder.encode(text)].join()))

/** A text to which ever more tokens were drawn. A pattern may need characters in a row that chance does not bring. */
export class EndlessText extends Error {}

/**
 * Writes a text in the format of a schema. Each token is drawn from those that can follow; after `most` tokens, those that
 * close something are preferred.
 */
export const written = (
  schema: unknown,
  {
    seed,
    most = 60,
    formats = new AnswerFormats(vocabulary, vocabSize),
  }: {
    readonly seed: number
    readonly most?: number
    readonly formats?: AnswerFormats
  },
): string => {
  const cursor = formats.cursor(schema)
  const random = stream(seed, "walk")
  const ids: Array<number> = []
  const logits = new Float32Array(vocabSize)
  while (!cursor.isComplete) {
    logits.fill(0)
    cursor.exclude(logits, [eos])
    const all = Array.from(logits.keys()).filter((id) => logits[id] === 0)
    const closers = all.filter((id) => id === eos || closing.has([...bytes[id]].join()))
    // Closers are characters of strings, too, in which a pattern may need another one first.
    const isClosing = ids.length >= most && closers.length > 0 && random.integer(4) > 0
    const from = isClosing ? closers : all
    const id = from[random.integer(from.length)]
    if (id === eos) break
    cursor.accept(id)
    ids.push(id)
    if (ids.length > most + 5000) throw new EndlessText("the text does not end")
  }
  return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(ids.flatMap((id) => [...bytes[id]])))
}
