import { Effect } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import type { TemplateMessage } from "../src/base/tokens/ChatTemplate.ts"
import { encodeChat } from "../src/base/tokens/encodeChat.ts"
import { byteLevel } from "../src/base/tokens/scratch.ts"
import { load } from "../src/base/tokens/TokenizerFolder.ts"
import type { Tokenizer } from "../src/base/tokens/Tokenizer.ts"
import { bytes, words } from "../src/base/tokens/words.ts"
import { filesOf, inMemory } from "../test/base/tokens/fixtures.ts"

const llama = Effect.runSync(load(inMemory(filesOf("llama")), ".")).tokenizer
const scratch = Effect.runSync(byteLevel())
const tokenizers: Readonly<Record<string, Tokenizer>> = {
  "byte-level BPE": llama,
  "bytes from scratch": scratch.tokenizer,
  bytes,
  words: words(["yes", "no", "é"]),
}

/** Well-formed texts of all planes, and pieces that tokenizers treat apart. */
const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme" }),
  fc
    .array(fc.constantFrom("yes", " no", "\n", "  ", "\t", "'s", "12", "\ufeff", "🙂", "e\u0301"))
    .map((parts) => parts.join("")),
)

const inPieces = (tokenizer: Tokenizer, ids: ReadonlyArray<number>, keepSpecial: boolean) => {
  const stream = tokenizer.decoder({ keepSpecial })
  const pieces = ids.map((id) => stream.push(id))
  return [...pieces, stream.end()]
}

describe("tokens", () => {
  for (const [name, tokenizer] of Object.entries(tokenizers)) {
    it(`of ${name} decode to the text that was encoded, at once and one by one`, () => {
      fc.assert(
        fc.property(text, (text) => {
          const ids = tokenizer.encode(text)
          assert.isTrue(ids.every((id) => Number.isInteger(id) && id >= 0 && id < tokenizer.vocabSize))
          assert.strictEqual(tokenizer.decode(ids), text)
          const pieces = inPieces(tokenizer, ids, false)
          assert.strictEqual(pieces.join(""), text)
          assert.isTrue(pieces.every((piece) => piece.isWellFormed()))
          // A text's own � arrives as a whole, too.
          if (!text.includes("\ufffd")) assert.isFalse(pieces.some((piece) => piece.includes("\ufffd")))
        }),
      )
    })

    it(`of ${name}, whatever they are, decode to the same text at once and one by one`, () => {
      const id = fc.integer({ min: 0, max: tokenizer.vocabSize + 3 })
      fc.assert(
        fc.property(fc.array(id, { maxLength: 40 }), fc.boolean(), (ids, keepSpecial) => {
          assert.strictEqual(inPieces(tokenizer, ids, keepSpecial).join(""), tokenizer.decode(ids, { keepSpecial }))
        }),
      )
    })
  }

  it("of a conversation begin with those of each shorter conversation", () => {
    const message: fc.Arbitrary<TemplateMessage> = fc.record({
      role: fc.constantFrom("user", "assistant", "system", "tool"),
      content: text,
    })
    const { tokenizer, template } = scratch
    fc.assert(
      fc.property(fc.array(message, { minLength: 1, maxLength: 6 }), fc.nat(5), (messages, count) => {
        const whole = Effect.runSync(encodeChat(tokenizer, template, { messages }))
        const shorter = messages.slice(0, count)
        const part = Effect.runSync(encodeChat(tokenizer, template, { messages: shorter }))
        assert.deepEqual(part.ids, whole.ids.slice(0, part.ids.length))
        assert.deepEqual(part.mask, whole.mask.slice(0, part.ids.length))
        assert.strictEqual(
          tokenizer.decode(whole.ids, { keepSpecial: true }),
          Effect.runSync(template.render({ messages })),
        )
      }),
    )
  })
})
