import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { byteLevel, characters } from "../../../src/base/tokens/scratch.ts"
import { load } from "../../../src/base/tokens/TokenizerFolder.ts"
import { inMemory } from "./fixtures.ts"

describe("a tokenizer from scratch", () => {
  it.effect("of bytes writes every text, and can be loaded from its files", () =>
    Effect.gen(function* () {
      const made = yield* byteLevel()
      assert.strictEqual(made.tokenizer.vocabSize, 3 + 256)
      const loaded = yield* load(inMemory(made.files), ".")
      for (const text of ["", "hello", "é漢🙂\n\0", "\ufeffa", "  two  "]) {
        const ids = made.tokenizer.encode(text)
        assert.strictEqual(ids.length, new TextEncoder().encode(text).length)
        assert.strictEqual(made.tokenizer.decode(ids), text)
        assert.deepEqual(loaded.tokenizer.encode(text), ids)
      }
      assert.deepEqual(loaded.tokenizer.special, made.tokenizer.special)
      assert.strictEqual(made.tokenizer.special.eos, made.tokenizer.idOf("<|im_end|>"))
      assert.strictEqual(made.tokenizer.special.pad, 0)
    }),
  )

  it.effect("of characters has one token for each, and one for all others", () =>
    Effect.gen(function* () {
      const { tokenizer, template } = yield* characters("abc012 é\n", { specialTokens: ["<|think|>"] })
      assert.strictEqual(tokenizer.vocabSize, 5 + 9)
      assert.deepEqual(tokenizer.encode("cab"), [7, 5, 6])
      assert.strictEqual(tokenizer.decode(tokenizer.encode("é 012\nabc")), "é 012\nabc")
      assert.deepEqual(tokenizer.encode("aXb"), [5, 3, 6])
      assert.strictEqual(tokenizer.decode([5, 3, 6]), "ab")
      assert.deepEqual(tokenizer.encode("<|think|>a"), [4, 5])
      const text = yield* template.render({ messages: [{ role: "a", content: "b" }] })
      assert.deepEqual(tokenizer.encode(text), [1, 5, 13, 6, 2, 13])
    }),
  )

  it.effect("refuses an alphabet with a character twice, or none", () =>
    Effect.gen(function* () {
      const twice = yield* Effect.flip(characters("aba"))
      assert.strictEqual(twice.message, `characters: expected different characters, found "a" twice`)
      assert.include((yield* Effect.flip(characters(""))).message, "found none")
    }),
  )
})
