import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { decode } from "../../../src/base/tokens/HuggingFaceTokenizer.ts"
import { utf8 } from "../../../src/base/text/utf8.ts"

const bpe = { type: "BPE", vocab: { a: 0, b: 1 }, merges: [] }
const wordPiece = { type: "WordPiece", unk_token: "a", continuing_subword_prefix: "##", vocab: { a: 0 } }

const opened = (settings: object) => {
  const none = { added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null }
  const json = utf8.encode(JSON.stringify({ ...none, model: bpe, ...settings }))
  return decode({ json, path: "tokenizer.json", config: null })
}

const refused = (settings: object) => Effect.map(Effect.flip(opened(settings)), ({ message }) => message)

const many = <A>(item: A): ReadonlyArray<A> => Array.from({ length: 12 }, () => item)
const doubling = { type: "Replace", pattern: { String: "a" }, content: "aa" }

describe("a tokenizer", () => {
  it.effect("is refused if its steps make a text much longer, or never end", () =>
    Effect.gen(function* () {
      const grown = "can make a text more than 128 times longer"
      assert.include(yield* refused({ normalizer: { type: "Sequence", normalizers: many(doubling) } }), grown)
      const bytes = { type: "Sequence", pretokenizers: many({ type: "ByteLevel" }) }
      assert.include(yield* refused({ pre_tokenizer: bytes }), grown)
      assert.include(yield* refused({ normalizer: { type: "Prepend", prepend: "a".repeat(1000) } }), grown)
      const half = many(doubling).slice(0, 5)
      const both = {
        normalizer: { type: "Sequence", normalizers: half },
        pre_tokenizer: { type: "Sequence", pretokenizers: half },
      }
      assert.include(yield* refused(both), `pre_tokenizer: with the normalizer, its steps ${grown}`)
      const single = Array.from({ length: 200 }, () => ({ Sequence: { id: "A", type_id: 0 } }))
      assert.include(yield* refused({ post_processor: { type: "TemplateProcessing", single, pair: [] } }), grown)
      assert.include(
        yield* refused({ pre_tokenizer: { type: "FixedLength", length: 0 } }),
        "FixedLength: length: expected a positive integer, found 0",
      )
    }),
  )

  it.effect("is refused if its vocabulary makes a short text slow", () =>
    Effect.gen(function* () {
      const vocab = Array.from({ length: 400 }, (_, index) => ["a".repeat(index + 1), -1])
      assert.include(
        yield* refused({ model: { type: "Unigram", unk_id: 0, vocab } }),
        "model.vocab: more than 64 of its tokens each begin with the one before",
      )
      assert.include(
        yield* refused({ model: { ...wordPiece, max_input_chars_per_word: 1e9 } }),
        "model.max_input_chars_per_word: expected at most 256, found 1000000000",
      )
      assert.include(
        yield* refused({ model: { ...wordPiece, continuing_subword_prefix: "#".repeat(100) } }),
        "model.continuing_subword_prefix: expected at most 64 characters",
      )
      const added_tokens = [{ id: 2, content: "a".repeat(5000), special: true }]
      assert.include(yield* refused({ added_tokens }), "expected tokens of at most 4096 characters, found 5000")
    }),
  )

  it.effect("is read if it is like published ones", () =>
    Effect.gen(function* () {
      yield* opened({ model: { ...wordPiece, max_input_chars_per_word: 100 } })
      const normalizers = [{ type: "Prepend", prepend: "▁" }, { type: "Replace", pattern: { String: " " }, content: "▁" }] // prettier-ignore
      const { tokenizer } = yield* opened({ normalizer: { type: "Sequence", normalizers } })
      assert.deepStrictEqual(tokenizer.encode("ab").slice(-2), [0, 1])
    }),
  )
})
