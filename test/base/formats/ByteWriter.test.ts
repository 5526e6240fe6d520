import { assert, describe, it } from "vitest"
import { ByteWriter } from "../../../src/base/formats/ByteWriter.ts"

const written = (write: (to: ByteWriter) => void): ReadonlyArray<number> => {
  const to = new ByteWriter(1)
  write(to)
  return [...to.written]
}

describe("a writer of bytes", () => {
  it("writes little-endian numbers one after another, growing as it needs to", () => {
    assert.deepEqual(
      written((to) => {
        to.byte(7)
        to.uint32(0x01020304)
        to.float32(1)
        to.float64(-2)
        to.text("é")
        to.piece(Uint8Array.of(8, 9))
        to.setUint32(1, 5)
      }),
      [7, 5, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0xc3, 0xa9, 8, 9],
    )
  })

  it.each([
    [0, [0]],
    [127, [127]],
    [128, [128, 1]],
    [300, [0xac, 0x02]],
    [2 ** 53 - 1, [255, 255, 255, 255, 255, 255, 255, 15]],
  ])("writes the varint %d", (value, bytes) =>
    assert.deepEqual(
      written((to) => to.varint(value)),
      bytes,
    ),
  )

  it.each([0, 9, 10, 99, 100, 2 ** 31 - 1, 2 ** 31, -1, 0.1, -0, 1e21, 5e-324, NaN, Infinity])(
    "writes %d as JSON does",
    (value) => {
      assert.strictEqual(String.fromCharCode(...written((to) => to.json(value))), JSON.stringify(value))
    },
  )

  it("starts again after clear", () => {
    assert.deepEqual(
      written((to) => {
        to.text("something")
        to.clear()
        to.byte(1)
      }),
      [1],
    )
  })
})
