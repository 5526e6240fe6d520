/** Regular expressions of whole texts, compared with those of JavaScript. */
import { assert, describe, it } from "vitest"
import { AnswerFormats } from "../../../src/decoder/constrained/AnswerFormats.ts"
import { EngineError } from "../../../src/decoder/inference/EngineError.ts"
import { vocabSize, vocabulary } from "./vocabulary.ts"

const formats = new AnswerFormats(vocabulary, vocabSize)

/** Tells whether a format accepts a text as a whole. The first 256 tokens are the bytes. */
const accepts = (format: Parameters<AnswerFormats["ofAnswer"]>[0]["textFormat"], text: string): boolean => {
  const cursor = formats.ofAnswer({ jsonSchema: null, textFormat: format })
  if (cursor === undefined) return true
  const logits = new Float32Array(vocabSize)
  for (const byte of new TextEncoder().encode(text)) {
    if (cursor.isComplete) return false
    logits.fill(0)
    cursor.exclude(logits, [])
    if (logits[byte] === -Infinity) return false
    cursor.accept(byte)
  }
  return cursor.canEnd
}

/** Code points where the bytes of UTF-8 change, with their neighbours. */
const around = [
  0x7f, 0xff, 0x7ff, 0x800, 0xfff, 0x1000, 0xd7ff, 0xe000, 0xffff, 0x1_0000, 0x3_ffff, 0x10_0000, 0x10_fffe,
]
  .flatMap((code) => [code - 1, code, code + 1])
  .filter((code) => code < 0xd800 || code > 0xdfff)

describe("a text in the format of a regular expression", () => {
  it.each([
    [0x70, 0x7ff],
    [0x7ff, 0x800],
    [0x800, 0xd7ff],
    [0xfff, 0x1_0000],
    [0x101, 0x3_fffe],
    [0x3_ffff, 0x10_ffff],
  ])("has the characters from %d to %d", (least, most) => {
    const regex = String.raw`(?:[\u{${least.toString(16)}}-\u{${most.toString(16)}}]x)`
    const wanted = new RegExp(`^${regex}$`, "u")
    for (const code of around) {
      const text = `${String.fromCodePoint(code)}x`
      assert.strictEqual(accepts({ type: "regex", regex }, text), wanted.test(text), code.toString(16))
    }
  })

  it("matches as a whole, is one of the choices, and has one format", () => {
    const regex = { type: "regex", regex: "^a|b{2,3}" } as const
    assert.deepStrictEqual(
      ["a", "b", "bb", "bbb", "bbbb", "ab"].map((text) => accepts(regex, text)),
      [true, false, true, true, false, false],
    )
    const choice = { type: "choice", choices: ["no", "nothing"] } as const
    assert.deepStrictEqual(
      ["n", "no", "not", "nothing"].map((text) => accepts(choice, text)),
      [false, true, false, true],
    )
    assert.throws(
      () => formats.ofAnswer({ jsonSchema: {}, textFormat: regex }),
      EngineError,
      "regex: expected no JSON Schema",
    )
    const many = { type: "choice", choices: ["a", ...Array.from({ length: 10_000 }, (_, at) => `${at}`)] } as const
    assert.throws(() => formats.ofAnswer({ jsonSchema: null, textFormat: many }), EngineError, "at most 10000 texts")
    const long = { type: "choice", choices: ["a".repeat(300_000)] } as const
    const refused = () => formats.ofAnswer({ jsonSchema: null, textFormat: long })
    assert.throws(refused, EngineError, "choice: expected at most 262144 characters")
  })
})
