import { assert, describe, it } from "vitest"
import { codecs, dtypes, type Dtype } from "../../../src/base/formats/dtypes.ts"

/** All 65,536 numbers of 16 bits, in the order of their bits. */
const all = (kind: Dtype) => [
  ...codecs[kind].decode(new Uint8Array(Uint16Array.from({ length: 65536 }, (_, at) => at).buffer)),
]
const bitsOf = (kind: Dtype, value: number): number => {
  const [low, high] = codecs[kind].encode(Float64Array.of(value))
  return low | (high << 8)
}

describe("half floats", () => {
  it.each([
    ["F16", 1, 0x3c00],
    ["F16", -2, 0xc000],
    ["F16", 65504, 0x7bff],
    ["F16", 65519.99, 0x7bff],
    ["F16", 65520, 0x7c00],
    ["F16", 2 ** -14, 0x0400],
    ["F16", 2 ** -24, 0x0001],
    ["F16", 2 ** -25, 0x0000],
    ["F16", 1 / 3, 0x3555],
    ["F16", -0, 0x8000],
    ["F16", Infinity, 0x7c00],
    ["F16", NaN, 0x7e00],
    ["F16", 2049, 0x6800],
    ["F16", 2051, 0x6802],
    ["BF16", 1, 0x3f80],
    ["BF16", -Infinity, 0xff80],
    ["BF16", 3.140625, 0x4049],
    ["BF16", Math.PI, 0x4049],
    ["BF16", 3.4e38, 0x7f80],
    ["BF16", 2 ** -133, 0x0001],
    ["BF16", NaN, 0x7fc0],
    // A tie in 32 bits only: rounded once, it goes up.
    ["BF16", 1 + 2 ** -8 + 2 ** -40, 0x3f81],
  ] as const)("%s of %d are these bits", (kind, value, bits) => {
    assert.strictEqual(bitsOf(kind, value), bits)
  })

  for (const kind of ["F16", "BF16"] as const) {
    it(`${kind} round-trip, and numbers between two go to the nearest`, () => {
      const values = all(kind)
      const wrong: Array<number> = []
      for (const [bits, value] of values.entries()) {
        if (!Number.isNaN(value) && bitsOf(kind, value) !== bits) wrong.push(bits)
        const next = values[bits + 1]
        if (!Number.isFinite(value) || !Number.isFinite(next) || bits === 0x7fff) continue
        const middle = (value + next) / 2
        if (bitsOf(kind, value + (next - value) * 0.499) !== bits) wrong.push(bits)
        if (bitsOf(kind, value + (next - value) * 0.501) !== bits + 1) wrong.push(bits)
        if (bitsOf(kind, middle) !== bits + (bits % 2)) wrong.push(bits)
      }
      assert.deepEqual(wrong, [])
    })
  }
})

describe("every kind", () => {
  it("has its width", () => {
    for (const kind of dtypes) {
      assert.strictEqual(codecs[kind].encode(Uint8Array.of(0, 1, 1)).length, 3 * codecs[kind].width, kind)
      assert.deepEqual([...codecs[kind].decode(codecs[kind].encode(Uint8Array.of(0, 1, 1)))], [0, 1, 1], kind)
    }
  })

  it("of integers refuses other values", () => {
    for (const kind of dtypes.filter((name) => !name.includes("F"))) {
      for (const value of [0.5, NaN, Infinity, 2 ** 64, -(2 ** 64)]) {
        assert.throws(() => codecs[kind].encode(Float64Array.of(value)), RangeError, `${value} is not a ${kind}`)
      }
    }
  })
})
