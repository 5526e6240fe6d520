import { assert, describe, it } from "@effect/vitest"
import * as G from "../../../../src/tensor/graph/ops.ts"
import { load, numbers } from "./support.ts"

/** Computes rows of a times columns of b, whose elements `right` returns, in the order of k and with single precision. */
const productOf = (
  [m, k, n]: readonly [number, number, number],
  left: Float32Array,
  right: (i: number, column: number) => number,
): Float32Array =>
  Float32Array.from({ length: m * n }, (_, at) => {
    let sum = 0
    for (let i = 0; i < k; i++)
      sum = Math.fround(sum + Math.fround(left[Math.floor(at / n) * k + i] * right(i, at % n)))
    return sum
  })

describe("a product that is computed in parts of the inner dimension", () => {
  for (const [m, k, n, lanes] of [
    [18, 2100, 21, 4],
    [18, 2100, 21, 16],
    [1, 203, 301, 4],
    [3, 203, 301, 8],
    [2, 208, 333, 16],
  ] as const)
    it(`adds ${m} × ${k} × ${n} in order, and then applies the maps, with ${lanes} numbers in a register`, () => {
      const [a, b] = [G.input("a", [m, k]), G.input("b", [k, n])]
      const outputs = { c: G.neg(G.matmul(a, b)) }
      const { feed, result, run } = load({ name: "product", inputs: { a, b }, state: {}, outputs }, { lanes })
      const [left, right] = [numbers(m * k), numbers(k * n, 2)]
      feed("a").set(left)
      feed("b").set(right)
      run()
      const expected = productOf([m, k, n], left, (i, column) => right[i * n + column])
      assert.deepStrictEqual(
        result("c"),
        expected.map((sum) => -sum),
      )
    })
})

describe("a product with a large weight [outputs, inputs]", () => {
  for (const [m, k, n, lanes] of [
    [1, 258, 255, 4],
    [3, 259, 254, 8],
    [5, 257, 256, 4],
    [21, 258, 255, 16],
  ] as const)
    it(`adds ${m} × ${k} × ${n} in order, with ${lanes} numbers in a register, and keeps the weight once`, () => {
      const x = G.input("x", [m, k])
      const w = G.state("w", [n, k])
      const spec = {
        name: "product",
        inputs: { x },
        state: { w: { tensor: w } },
        outputs: { y: G.matmul(x, w, { transposeB: true }) },
      }
      const weight = numbers(n * k, 2)
      const { bytes, feed, module, prepare, result, run } = load(spec, { lanes, initialStates: { w: weight } })
      feed("x").set(numbers(m * k))
      prepare()
      run()
      assert.deepStrictEqual(
        result("y"),
        productOf([m, k, n], feed("x"), (i, column) => weight[column * k + i]),
      )
      const rest = bytes("y").buffer.byteLength - weight.byteLength
      assert.isBelow(rest, weight.byteLength, `${module.state["w"].length} numbers are kept twice`)
    })
})
