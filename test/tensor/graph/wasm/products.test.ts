import { assert, describe, it } from "@effect/vitest"
import * as G from "../../../../src/tensor/graph/ops.ts"
import { load, numbers } from "./support.ts"

describe("a product with a very long inner dimension, which is computed in parts", () => {
  const [m, k, n] = [18, 2100, 21]
  for (const lanes of [4, 8, 16] as const)
    it(`adds in the order of that dimension, and then applies the maps, with ${lanes} numbers in a register`, () => {
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
