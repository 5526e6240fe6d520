import { assert, describe, it } from "@effect/vitest"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { Tensor } from "../../../src/tensor/graph/Tensor.ts"

/** Compares the results of every op with numbers worked out by hand, or with loops written in another way. */

const f = (values: ReadonlyArray<number>, shape?: ReadonlyArray<number>): Tensor => G.constant(values, shape)
const i = (values: ReadonlyArray<number>, shape?: ReadonlyArray<number>): Tensor => G.constant(values, shape, "i32")
const b = (values: ReadonlyArray<number>, shape?: ReadonlyArray<number>): Tensor => G.constant(values, shape, "bool")
const m23 = f([1, 2, 3, 4, 5, 6], [2, 3])

const e = Math.E
const table: Readonly<Record<string, readonly [Tensor, ReadonlyArray<number>]>> = {
  neg: [G.neg(f([1, -2, 0])), [-1, 2, -0]],
  abs: [G.abs(f([1, -2, 0])), [1, 2, 0]],
  sign: [G.sign(f([3, -2, 0])), [1, -1, 0]],
  exp: [G.exp(f([0, 1])), [1, e]],
  log: [G.log(f([1, 4, 0])), [0, 2 * Math.LN2, -Infinity]],
  sqrt: [G.sqrt(f([4, 0, 2.25])), [2, 0, 1.5]],
  reciprocal: [G.reciprocal(f([4, -0.5])), [0.25, -2]],
  sin: [G.sin(f([0, 1])), [0, 0.8414709848078965]],
  cos: [G.cos(f([0, 1])), [1, 0.5403023058681398]],
  tanh: [G.tanh(f([0, 1, -30])), [0, 0.7615941559557649, -1]],
  sigmoid: [G.sigmoid(f([0, 2, -800])), [0.5, 0.8807970779778823, 0]],
  relu: [G.relu(f([3, -2, 0])), [3, 0, 0]],
  softplus: [G.softplus(f([0, 800, -800])), [Math.LN2, 800, 0]],
  floor: [G.floor(f([1.5, -1.5, 2])), [1, -2, 2]],
  silu: [G.silu(f([2])), [1.7615941559557646]],
  gelu: [G.gelu(f([1, -1])), [0.841191990607477, -0.158808009392523]],
  huber: [G.huber(f([0.5, -3])), [0.125, 2.5]],
  "huber, with delta": [G.huber(f([0.5, -3]), 2), [0.125, 4]],
  "add, a row to a matrix": [G.add(m23, f([10, 20, 30])), [11, 22, 33, 14, 25, 36]],
  "sub, a column from a matrix": [G.sub(m23, f([1, 4], [2, 1])), [0, 1, 2, 0, 1, 2]],
  "mul, of a column and a row": [G.mul(f([1, 2], [2, 1]), f([3, 4, 5])), [3, 4, 5, 6, 8, 10]],
  div: [G.div(f([1, 6]), f([4, 3])), [0.25, 2]],
  pow: [G.pow(f([2, 9, 5]), f([10, 0.5, 0])), [1024, 3, 1]],
  minimum: [G.minimum(f([1, 5]), 3), [1, 3]],
  maximum: [G.maximum(f([1, 5]), 3), [3, 5]],
  "arithmetic of integers": [G.sub(G.mul(i([2, 3]), 4), i([1, 20])), [7, -8]],
  less: [G.less(f([1, 2, 3]), 2), [1, 0, 0]],
  lessEqual: [G.lessEqual(f([1, 2, 3]), 2), [1, 1, 0]],
  greater: [G.greater(f([1, 2, 3]), 2), [0, 0, 1]],
  greaterEqual: [G.greaterEqual(f([1, 2, 3]), 2), [0, 1, 1]],
  equal: [G.equal(i([1, 2, 3]), 2), [0, 1, 0]],
  notEqual: [G.notEqual(f([1, 2, NaN]), f([1, 3, NaN])), [0, 1, 1]],
  and: [G.and(b([0, 0, 1, 1]), b([0, 1, 0, 1])), [0, 0, 0, 1]],
  or: [G.or(b([0, 0, 1, 1]), b([0, 1, 0, 1])), [0, 1, 1, 1]],
  not: [G.not(b([0, 1])), [1, 0]],
  "where, broadcast": [G.where(b([1, 0], [2, 1]), f([1, 2]), f([9])), [1, 2, 9, 9]],
  clip: [G.clip(f([-2, 0.5, 2]), -1, 1), [-1, 0.5, 1]],
  "cast to integers, toward zero": [G.cast(f([1.9, -1.9, 3]), "i32"), [1, -1, 3]],
  "cast to bool": [G.cast(f([0, -0, 0.1, -3]), "bool"), [0, 0, 1, 1]],
  "cast from bool": [G.cast(b([1, 0]), "f32"), [1, 0]],
  stopGradient: [G.stopGradient(f([1, 2])), [1, 2]],
  matmul: [G.matmul(m23, f([1, 0, 0, 1, 1, 1], [3, 2])), [4, 5, 10, 11]],
  "matmul of transposes": [
    G.matmul(m23, f([1, 1, 0, 0], [2, 2]), { transposeA: true, transposeB: true }),
    [5, 0, 7, 0, 9, 0],
  ],
  "matmul, each matrix by one": [G.matmul(f([1, 2, 3, 4], [2, 1, 2]), f([1, 2, 3, 4], [2, 2])), [7, 10, 15, 22]],
  "sum of all": [G.sum(m23), [21]],
  "sum of rows": [G.sum(m23, -1), [6, 15]],
  "sum of columns": [G.sum(m23, 0, { keepDims: true }), [5, 7, 9]],
  mean: [G.mean(m23, 1), [2, 5]],
  max: [G.max(f([1, 9, 3, 4, 5, 6], [2, 3]), 0), [4, 9, 6]],
  min: [G.min(f([1, 9, 3, 4, 5, 6], [2, 3]), 1), [1, 4]],
  "sum over the outer axes": [G.sum(f([1, 2, 3, 4, 5, 6, 7, 8], [2, 2, 2]), [0, 2]), [14, 22]],
  "argMax, the first of equals": [G.argMax(f([1, 7, 7, 3, 2, 1], [2, 3])), [1, 0]],
  "argMax down the columns": [G.argMax(f([1, 7, 7, 3, 2, 8], [2, 3]), 0), [1, 0, 1]],
  softmax: [G.softmax(f([0, Math.log(3), 1000, 1000], [2, 2])), [0.25, 0.75, 0.5, 0.5]],
  logSoftmax: [G.logSoftmax(f([0, 0, -1000, 0], [2, 2])), [-Math.LN2, -Math.LN2, -1000, 0]],
  logSumExp: [G.logSumExp(f([1000, 1000, 0, 0], [2, 2])), [1000 + Math.LN2, Math.LN2]],
  cumSum: [G.cumSum(m23), [1, 3, 6, 4, 9, 15]],
  "cumSum down the columns": [G.cumSum(m23, 0), [1, 2, 3, 5, 7, 9]],
  "cumSum, exclusive": [G.cumSum(f([1, 2, 3]), 0, { exclusive: true }), [0, 1, 3]],
  "cumSum, backwards": [G.cumSum(f([1, 2, 3]), 0, { reverse: true }), [6, 5, 3]],
  "cumSum, exclusive and backwards": [G.cumSum(f([1, 2, 3]), 0, { exclusive: true, reverse: true }), [5, 3, 0]],
  variance: [G.variance(f([1, 3, 2, 2], [2, 2]), -1), [1, 0]],
  layerNorm: [G.layerNorm(f([1, 3, -2, 6], [2, 2]), { epsilon: 0 }), [-1, 1, -1, 1]],
  rmsNorm: [G.rmsNorm(f([1, 7]), { epsilon: 0, scale: f([5, 10]) }), [1, 14]],
  reshape: [G.reshape(m23, [3, 2]), [1, 2, 3, 4, 5, 6]],
  transpose: [G.transpose(m23), [1, 4, 2, 5, 3, 6]],
  "transpose of three axes": [G.transpose(f([0, 1, 2, 3, 4, 5, 6, 7], [2, 2, 2]), [2, 0, 1]), [0, 2, 4, 6, 1, 3, 5, 7]],
  broadcastTo: [G.broadcastTo(f([1, 2], [2, 1]), [2, 2, 2]), [1, 1, 2, 2, 1, 1, 2, 2]],
  slice: [G.slice(m23, [0, 1], [2, 2]), [2, 3, 5, 6]],
  split: [G.split(m23, [1, 2], 1)[1], [2, 3, 5, 6]],
  "concat, below": [G.concat([f([1, 2], [1, 2]), f([3, 4, 5, 6], [2, 2])]), [1, 2, 3, 4, 5, 6]],
  "concat, beside": [G.concat([f([1, 2], [2, 1]), f([3, 4, 5, 6], [2, 2])], 1), [1, 3, 4, 2, 5, 6]],
  stack: [G.stack([f([1, 2]), f([3, 4])], 1), [1, 3, 2, 4]],
  pad: [G.pad(f([1, 2], [1, 2]), [1, 0], [0, 1], 9), [9, 9, 9, 1, 2, 9]],
  "gather, of rows": [G.gather(m23, i([1, 0, 1])), [4, 5, 6, 1, 2, 3, 4, 5, 6]],
  "gather, by a matrix": [G.gather(f([7, 8, 9]), i([0, 2, 2, 1], [2, 2])), [7, 9, 9, 8]],
  scatterAdd: [G.scatterAdd(i([2, 0, 2]), f([1, 2, 3, 4, 5, 6], [3, 2]), 3), [3, 4, 0, 0, 6, 8]],
  "oneHot, out of range is nothing": [G.oneHot(i([1, -1, 2, 3]), 3), [0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]],
  // A 2×2 kernel over 3×3: each output is the sum over a diagonal pair.
  conv2d: [G.conv2d(f([1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 1, 3, 3]), f([1, 0, 0, 10], [1, 1, 2, 2])), [51, 62, 84, 95]],
  "conv2d, padded and strided": [
    G.conv2d(f([1, 2, 3, 4], [1, 1, 2, 2]), f([1, 2, 3, 4], [1, 1, 2, 2]), { padding: 1, strides: 2 }),
    [4, 6, 6, 4],
  ],
}

describe("every op", () => {
  for (const [name, [tensor, expected]] of Object.entries(table)) {
    it(name, () => {
      const [values] = evaluate([tensor])
      assert.strictEqual(values.length, expected.length)
      expected.forEach((value, index) => {
        const difference = Object.is(values[index], value) || values[index] === value ? 0 : values[index] - value
        // Constants are float32, so that of log 3 is not exact.
        assert.isBelow(Math.abs(difference), 1e-7, `element ${index}: ${values[index]}, expected ${value}`)
      })
    })
  }
})

describe("convolutions with several images, channels and outputs", () => {
  const [n, c, h, w, o, kh, kw] = [2, 3, 5, 6, 4, 3, 2]
  const [strides, padding] = [[2, 1] as const, [1, 0, 2, 1] as const]
  const [rows, columns] = [Math.floor((h + 3 - kh) / 2) + 1, w + 1 - kw + 1]
  const value = (at: number) => ((at * 7) % 11) - 5
  const x = f(
    Array.from({ length: n * c * h * w }, (_, at) => value(at)),
    [n, c, h, w],
  )
  const k = f(
    Array.from({ length: o * c * kh * kw }, (_, at) => value(at + 3)),
    [o, c, kh, kw],
  )
  const y = G.conv2d(x, k, { strides, padding })

  /** Output by output, from a padded image that reads as zero outside. */
  const pixel = (image: number, channel: number, row: number, column: number): number =>
    row < 0 || row >= h || column < 0 || column >= w ? 0 : value(((image * c + channel) * h + row) * w + column)
  const output = (image: number, out: number, row: number, column: number): number => {
    let total = 0
    for (let tap = 0; tap < c * kh * kw; tap++) {
      const [channel, down, right] = [Math.floor(tap / (kh * kw)), Math.floor(tap / kw) % kh, tap % kw]
      total += pixel(image, channel, 2 * row + down - 1, column + right - 0) * value(out * c * kh * kw + tap + 3)
    }
    return total
  }

  it("have the shape of the formula", () => assert.deepStrictEqual([...y.shape], [n, o, rows, columns]))

  it("are sums over windows", () => {
    const [values] = evaluate([y])
    values.forEach((found, at) => {
      const column = at % columns
      const row = Math.floor(at / columns) % rows
      const out = Math.floor(at / columns / rows) % o
      const image = Math.floor(at / columns / rows / o)
      assert.strictEqual(found, output(image, out, row, column), `at ${image}, ${out}, ${row}, ${column}`)
    })
  })

  it("have gradients with ⟨y(x, k), v⟩ = ⟨x, gradient of x⟩ = ⟨k, gradient of k⟩, as they are linear in each", () => {
    const v = f(
      Array.from({ length: n * o * rows * columns }, (_, at) => ((at * 5) % 7) - 3),
      y.shape,
    )
    const loss = G.sum(G.mul(y, v))
    const [dx, dk] = gradients(loss, [x, k])
    const [whole, byX, byK] = evaluate([loss, G.sum(G.mul(x, dx)), G.sum(G.mul(k, dk))])
    assert.strictEqual(byX[0], whole[0])
    assert.strictEqual(byK[0], whole[0])
  })
})

describe("evaluate", () => {
  it("computes in doubles from values of inputs and states", () => {
    const x = G.input("x", [2])
    const s = G.state("s", [])
    const leaves = new Map<Tensor, ArrayLike<number>>([
      [x, [0.1, 0.2]],
      [s, [1 / 3]],
    ])
    const [y] = evaluate([G.mul(x, s)], leaves)
    assert.deepStrictEqual([...y], [0.1 / 3, 0.2 / 3])
  })

  it("rejects a missing value, and a wrong number of them", () => {
    const x = G.input("x", [2])
    assert.throws(() => evaluate([x]), /evaluate: the value of input "x" is missing/)
    assert.throws(() => evaluate([x], new Map([[x, [1]]])), /evaluate: expected 2 numbers, found 1 \(given \[2\]\)/)
  })
})
