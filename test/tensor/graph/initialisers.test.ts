import { assert, describe, it } from "@effect/vitest"
import * as Initialisers from "../../../src/tensor/graph/initialisers.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const random = () => stream(1, "initialisers")

const moments = (values: Float32Array) => {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length
  return { mean, variance }
}

/** Products of all rows with all rows, or of columns with columns where those are fewer. */
const products = (matrix: Float32Array, rows: number, columns: number): ReadonlyArray<number> => {
  const [count, length] = rows < columns ? [rows, columns] : [columns, rows]
  const at = (vector: number, index: number) =>
    matrix[rows < columns ? vector * columns + index : index * columns + vector]
  return Array.from({ length: count * count }, (_, pair) => {
    let total = 0
    for (let index = 0; index < length; index++) total += at(Math.floor(pair / count), index) * at(pair % count, index)
    return total
  })
}

describe("orthogonal", () => {
  for (const [rows, columns] of [
    [64, 64],
    [4, 64],
    [64, 2],
    [5, 1],
  ]) {
    it(`${rows} × ${columns}: the shorter side's vectors are orthonormal, times the gain`, () => {
      const matrix = Initialisers.orthogonal(3)(random(), [rows, columns])
      const count = Math.min(rows, columns)
      products(matrix, rows, columns).forEach((product, pair) => {
        assert.closeTo(product, Math.floor(pair / count) === pair % count ? 9 : 0, 1e-5)
      })
    })
  }

  it("a kernel counts as a matrix with one row for each output", () => {
    const kernel = Initialisers.orthogonal(1)(random(), [4, 2, 3, 3])
    products(kernel, 4, 18).forEach((product, pair) => {
      assert.closeTo(product, Math.floor(pair / 4) === pair % 4 ? 1 : 0, 1e-6)
    })
  })

  it("has positive and negative determinants with the same probability", () => {
    const signs = Array.from({ length: 400 }, (_, at) => Math.sign(Initialisers.orthogonal(1)(stream(at), [1, 1])[0]))
    assert.isBelow(Math.abs(signs.reduce((sum, sign) => sum + sign, 0)), 80)
  })
})

describe("scales", () => {
  const shape = [200, 300]
  const cases = {
    "normal: the deviation": [Initialisers.normal(0.5), 0.25],
    "he: two by the inputs": [Initialisers.he, 2 / 200],
    "lecun: one by the inputs": [Initialisers.lecun, 1 / 200],
    "xavier: two by inputs and outputs": [Initialisers.xavier, 2 / 500],
    "uniform: a third of the bound's square": [Initialisers.uniform(0.3), 0.03],
  } as const
  for (const [name, [init, expected]] of Object.entries(cases)) {
    it(name, () => {
      const { mean, variance } = moments(init(random(), shape))
      assert.closeTo(variance, expected, 0.03 * expected)
      assert.closeTo(mean, 0, 4 * Math.sqrt(expected / 60_000))
    })
  }

  it("uniform numbers stay within their bounds", () => {
    const bound = Math.sqrt(6 / 500)
    assert.isTrue(Initialisers.xavier(random(), shape).every((value) => Math.abs(value) <= bound))
  })

  it("the inputs of a kernel are its channels times its area", () => {
    const { variance } = moments(Initialisers.he(random(), [64, 32, 3, 3]))
    assert.closeTo(variance, 2 / (32 * 9), 0.03 * (2 / (32 * 9)))
  })

  it("constants and zeros fill a shape", () => {
    assert.deepStrictEqual(Initialisers.constant(0.5)(random(), [2]), Float32Array.of(0.5, 0.5))
    assert.deepStrictEqual(Initialisers.zeros(random(), [2]), new Float32Array(2))
  })

  it("the same stream gives the same numbers", () => {
    for (const init of [Initialisers.he, Initialisers.orthogonal(1), Initialisers.uniform(1)]) {
      assert.deepStrictEqual(init(random(), [7, 3]), init(random(), [7, 3]))
    }
  })
})

describe("the first values of PyTorch's layers", () => {
  it("are uniform within ±1/√inputs, biases too, and leave other parameters as they are", () => {
    const parameters = {
      "a.weight": { shape: [16, 500], init: Initialisers.zeros },
      "a.bias": { shape: [500], init: Initialisers.zeros },
      "a.logStd": { shape: [3], init: Initialisers.constant(-2) },
    }
    const drawn = Object.entries(Initialisers.asPytorch(parameters)).map(([, { shape, init }]) =>
      init(stream(1, "test"), shape),
    )
    for (const values of drawn.slice(0, 2)) {
      const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
      assert.isAtMost(largest, 0.25)
      assert.isAtLeast(largest, 0.24)
    }
    assert.deepEqual([...drawn[2]], [-2, -2, -2])
  })
})
