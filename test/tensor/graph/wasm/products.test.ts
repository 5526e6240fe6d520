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

describe("a product with a weight of bytes", () => {
  for (const [m, k, n, lanes] of [
    [1, 22, 35, 4],
    [3, 23, 34, 8],
    [5, 21, 33, 4],
    [1, 5, 1, 4],
    [20, 90, 70, 16],
    [2, 2100, 9, 4],
  ] as const)
    it(`adds ${m} × ${k} × ${n} in order both ways, with ${lanes} numbers in a register, and keeps no floats`, () => {
      const [x, dy] = [G.input("x", [m, k]), G.input("dy", [m, n])]
      const bytes = G.state("w", [n, k], "i8")
      const w = G.cast(bytes, "f32")
      const outputs = { y: G.neg(G.matmul(x, w, { transposeB: true })), dx: G.matmul(dy, w) }
      const program = load({ name: "product", inputs: { x, dy }, state: { w: { tensor: bytes } }, outputs }, { lanes })
      const { feed, module, prepare, result, run } = program
      const weight = Int8Array.from(numbers(n * k, 2), (number) => Math.round(64 * number - 0.5))
      new Int8Array(feed("x").buffer, module.state["w"].address, n * k).set(weight)
      feed("x").set(numbers(m * k))
      feed("dy").set(numbers(m * n, 3))
      prepare()
      run()
      assert.deepStrictEqual(
        result("y").map((sum) => -sum),
        productOf([m, k, n], feed("x"), (i, column) => weight[column * k + i]),
      )
      assert.deepStrictEqual(
        result("dx"),
        productOf([m, n, k], feed("dy"), (i, column) => weight[i * k + column]),
      )
    })
})

describe("a product with a large weight [outputs, inputs]", () => {
  for (const [m, k, n, lanes] of [
    [1, 258, 255, 4],
    [4, 259, 254, 8],
    [5, 257, 256, 4],
    [21, 258, 255, 16],
  ] as const)
    it(`adds ${m} × ${k} × ${n} in order, with ${lanes} numbers in a register, and copies the weight for few rows only`, () => {
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
      const isKeptTwice = rest >= weight.byteLength
      assert.strictEqual(isKeptTwice, m < 4, `${module.state["w"].length} numbers, and ${rest} bytes beside them`)
    })
})
