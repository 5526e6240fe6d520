import { assert, describe, it } from "vitest"
import { bytes, words } from "../../../src/base/tokens/words.ts"

describe("tokens of bytes and words", () => {
  it("decode to the same text, even if it begins with a byte order mark", () => {
    for (const text of ["", "yes or no", " no\n", "ü😀", "\uFEFFyes", "a\uFEFFb"]) {
      for (const tokenizer of [bytes, words(["yes", "no"])]) {
        assert.strictEqual(tokenizer.decode(tokenizer.encode(text)), text, JSON.stringify(text))
      }
    }
  })
})
