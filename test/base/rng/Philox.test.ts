import { assert, describe, it } from "vitest"
import { multiplyHigh, philox, philoxPair } from "../../../src/base/rng/Philox.ts"

const words = (text: string): ReadonlyArray<number> => text.split(" ").map((word) => Number.parseInt(word, 16))

describe("philox", () => {
  // Random123's kat_vectors: all there are for philox4x32 with 10 rounds.
  it.each([
    ["00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"],
    ["ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"],
    ["243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"],
  ])("maps counter %s under key %s to the published block", (counter, key, expected) => {
    const [c0, c1, c2, c3] = words(counter)
    const [k0, k1] = words(key)
    const out = new Uint32Array(6)
    philox(c0, c1, c2, c3, k0, k1, out, 1)
    assert.deepEqual([...out], [0, ...words(expected), 0])
  })

  it("takes a word as signed or unsigned", () => {
    const unsigned = new Uint32Array(4)
    const signed = new Uint32Array(4)
    philox(0xdeadbeef, 0xffffffff, 0x80000000, 1, 0xcafebabe, 0x90000000, unsigned, 0)
    philox(0xdeadbeef | 0, -1, 0x80000000 | 0, 1, 0xcafebabe | 0, 0x90000000 | 0, signed, 0)
    assert.deepEqual(signed, unsigned)
  })
})

describe("philoxPair", () => {
  it.each([[0], [6], [0x7ffffffe], [0xfffffffe], [-2]])("gives the blocks of the counter %i and of the next", (c0) => {
    const blocks = new Uint32Array(8)
    philox(c0, 2, 3, -4, 5, -6, blocks, 0)
    philox(c0 + 1, 2, 3, -4, 5, -6, blocks, 4)
    const pair = new Uint32Array(8)
    philoxPair(c0, 2, 3, -4, 5, -6, pair)
    assert.deepEqual(pair, blocks)
  })
})

describe("multiplyHigh", () => {
  it("gives the upper half of the product, at the edges too", () => {
    const edges = [0, 1, 2, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xcd9e8d57, 0xd2511f53, 0xfffffffe, 0xffffffff]
    for (const a of edges) {
      for (const b of edges) {
        assert.strictEqual(multiplyHigh(a, b) >>> 0, Number((BigInt(a) * BigInt(b)) >> 32n), `${a} × ${b}`)
      }
    }
  })
})
