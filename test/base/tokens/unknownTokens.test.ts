import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { utf8 } from "../../../src/base/text/utf8.ts"
import { decode } from "../../../src/base/tokens/HuggingFaceTokenizer.ts"

const none = { added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null }
const names = ["<unk>", "a", "b", "ab", "ba"]
const unigram = { type: "Unigram", unk_id: 0, vocab: names.map((name, id) => [name, -id]) }
const pairs = {
  type: "BPE",
  unk_token: "<unk>",
  fuse_unk: true,
  vocab: Object.fromEntries(names.map((name, id) => [name, id])),
  merges: [
    ["a", "b"],
    ["b", "a"],
  ],
}

const opened = (model: object) =>
  decode({ json: utf8.encode(JSON.stringify({ ...none, model })), path: "tokenizer.json", config: null })

describe("unknown tokens", () => {
  it.effect.each([unigram, pairs])("are joined as the library joins them ($type)", (model) =>
    Effect.gen(function* () {
      const { tokenizer } = yield* opened(model)
      const library = new LibraryTokenizer({ ...none, model }, {})
      const parts = fc.array(fc.constantFrom("a", "b", "y", "z", " ", "<unk>"), { maxLength: 12 })
      fc.assert(
        fc.property(parts, (list) => {
          const text = list.join("")
          assert.deepStrictEqual(tokenizer.encode(text), library.encode(text).ids)
        }),
      )
    }),
  )

  it.effect(
    "of a long text are joined in time that grows with it, not one by one",
    () =>
      Effect.gen(function* () {
        const { tokenizer } = yield* opened(unigram)
        assert.deepStrictEqual(tokenizer.encode("z".repeat(300_000)), [0])
        assert.lengthOf(tokenizer.encode("a".repeat(300_000)), 300_000)
      }),
    { tags: "slow" },
  )
})
