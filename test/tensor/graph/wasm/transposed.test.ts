import { assert, describe, it } from "@effect/vitest"
import * as G from "../../../../src/tensor/graph/ops.ts"
import { load, numbers } from "./support.ts"

/** Computes a transposition element by element. */
const expected = (
  data: Float32Array,
  shape: ReadonlyArray<number>,
  permutation: ReadonlyArray<number>,
): Float32Array => {
  const stridesOf = (sizes: ReadonlyArray<number>): ReadonlyArray<number> =>
    sizes.map((_, axis) => sizes.slice(axis + 1).reduce((product, size) => product * size, 1))
  const strides = permutation.map((axis) => stridesOf(shape)[axis])
  const sizes = permutation.map((axis) => shape[axis])
  return data.map(
    (_, at) =>
      data[
        stridesOf(sizes).reduce((sum, stride, axis) => sum + (Math.floor(at / stride) % sizes[axis]) * strides[axis], 0)
      ],
  )
}

describe("transposed copies", () => {
  const cases: ReadonlyArray<readonly [ReadonlyArray<number>, ReadonlyArray<number>]> = [
    [
      [64, 64],
      [1, 0],
    ],
    [
      [4, 5],
      [1, 0],
    ],
    [
      [7, 33],
      [1, 0],
    ],
    [
      [35, 18],
      [1, 0],
    ],
    [
      [3, 5],
      [1, 0],
    ],
    [
      [3, 17, 6],
      [0, 2, 1],
    ],
    [
      [5, 4, 21],
      [2, 0, 1],
    ],
    [
      [5, 6, 7],
      [1, 2, 0],
    ],
    [
      [2, 9, 3, 8],
      [0, 2, 3, 1],
    ],
    [
      [2, 9, 3, 8],
      [3, 2, 1, 0],
    ],
  ]
  for (const [shape, permutation] of cases)
    it(`have the numbers of ${shape.join(" × ")} by the axes ${permutation.join(", ")}, and write nothing else`, () => {
      const x = G.input("x", shape)
      const outputs = { y: G.transpose(x, permutation), z: G.neg(x) }
      const { feed, result, run } = load({ name: "transpose", inputs: { x }, state: {}, outputs })
      const data = numbers(feed("x").length)
      feed("x").set(data)
      run()
      assert.deepStrictEqual(result("y"), expected(data, shape, permutation))
      assert.deepStrictEqual(feed("x"), data)
      assert.deepStrictEqual(
        result("z"),
        data.map((number) => -number),
      )
    })
})
