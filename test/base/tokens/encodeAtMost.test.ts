import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { encodeAtMost } from "../../../src/base/tokens/encodeAtMost.ts"
import * as Words from "../../../src/base/tokens/words.ts"

const tokenizer = Words.words(["hello", "there"])

describe("a text of at most so many tokens", () => {
  it.effect("is encoded as without a limit", () =>
    Effect.gen(function* () {
      for (const text of ["", "hello there", "hello".repeat(10), " hello there".repeat(10_000), "é".repeat(40_000)]) {
        const ids = tokenizer.encode(text)
        assert.deepStrictEqual(yield* encodeAtMost(tokenizer, text, ids.length), ids)
      }
    }),
  )

  it.effect("is refused if it has more, by its characters alone if these show it", () =>
    Effect.gen(function* () {
      let encoded = 0
      const counting = { ...tokenizer, encode: (text: string) => ((encoded += text.length), tokenizer.encode(text)) }
      const problem = (text: string, most: number) =>
        Effect.map(Effect.flip(encodeAtMost(counting, text, most)), ({ message }) => message)
      assert.strictEqual(
        yield* problem("hello there hello", 2),
        "has 17 characters; expected at most 2 tokens (12 characters)",
      )
      assert.strictEqual(encoded, 0)
      assert.strictEqual(yield* problem("abcd", 3), "has 4 tokens; expected at most 3 tokens")
      encoded = 0
      assert.strictEqual(yield* problem("a".repeat(500_000), 100_000), "is too long; expected at most 100000 tokens")
      assert.isBelow(encoded, 150_000)
    }),
  )
})
