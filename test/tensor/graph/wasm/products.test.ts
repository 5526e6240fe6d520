import { assert, describe, it } from "@effect/vitest"
import * as G from "../../../../src/tensor/graph/ops.ts"
import { load, numbers } from "./support.ts"

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
      const expected = Float32Array.from({ length: m * n }, (_, at) => {
        let sum = 0
        for (let i = 0; i < k; i++)
          sum = Math.fround(sum + Math.fround(left[Math.floor(at / n) * k + i] * right[i * n + (at % n)]))
        return -sum
      })
      assert.deepStrictEqual(result("c"), expected)
    })
})
