import { assert, describe, it } from "vitest"
import { placeData, windowSizes } from "../../../src/trainer/tinker/training/windows.ts"

const sizes = windowSizes(128)
const examples = (...lengths: ReadonlyArray<number>) => lengths.map((length) => ({ tokens: new Int32Array(length) }))
const shapes = (...lengths: ReadonlyArray<number>) =>
  placeData(examples(...lengths), sizes).map(({ size: { rows, width }, placed }) => [
    rows,
    width,
    ...placed.map(({ start }) => start),
  ])

describe("the windows of a request", () => {
  it("are of the smallest program that has room", () => {
    assert.deepStrictEqual(shapes(10, 20, 5), [[8, 32, 0, 10, 32]])
    assert.deepStrictEqual(shapes(10, 33), [[2, 128, 0, 10]])
    assert.deepStrictEqual(shapes(100, 100, 100), [[4, 128, 0, 128, 256]])
  })

  it("fill programs of the largest size, and the rest is in one of a smaller size", () => {
    const nine = shapes(...Array.from({ length: 9 }, () => 100))
    assert.deepStrictEqual(nine, [
      [8, 128, ...Array.from({ length: 8 }, (_, row) => 128 * row)],
      [2, 128, 0],
    ])
  })
})
