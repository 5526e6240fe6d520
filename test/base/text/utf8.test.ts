import { assert, describe, it } from "vitest"
import { utf8 } from "../../../src/base/text/utf8.ts"

const notUtf8 = Uint8Array.of(97, 0xff)
const marked = Uint8Array.of(0xef, 0xbb, 0xbf, 97)

describe("utf8", () => {
  it("decodes what it has encoded", () => {
    assert.strictEqual(utf8.decode(utf8.encode("naïve 🙂")), "naïve 🙂")
  })

  it("replaces bytes that are not UTF-8, or throws, as the name of the function says", () => {
    assert.strictEqual(utf8.decode(notUtf8), "a�")
    assert.throws(() => utf8.decodeStrict(notUtf8), TypeError)
    assert.throws(() => utf8.decodeExact(notUtf8), TypeError)
  })

  it("keeps a byte order mark only where the text must encode to the same bytes", () => {
    assert.strictEqual(utf8.decode(marked), "a")
    assert.strictEqual(utf8.decodeStrict(marked), "a")
    assert.deepStrictEqual(utf8.encode(utf8.decodeExact(marked)), marked)
  })
})
