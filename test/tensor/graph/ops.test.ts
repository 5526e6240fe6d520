import { assert, describe, it } from "@effect/vitest"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { Shape, Tensor } from "../../../src/tensor/graph/Tensor.ts"

const f32 = (...shape: Shape): Tensor => G.input("x", shape)
const i32 = (...shape: Shape): Tensor => G.input("i", shape, "i32")
const bool = (...shape: Shape): Tensor => G.input("b", shape, "bool")

const errorOf = (build: () => unknown): GraphError => {
  try {
    build()
  } catch (error) {
    if (error instanceof GraphError) return error
    throw error
  }
  throw new Error("nothing was wrong with it")
}

describe("shapes", () => {
  const cases: Readonly<Record<string, readonly [Tensor, Shape]>> = {
    "a unary op keeps its input's": [G.tanh(f32(2, 3)), [2, 3]],
    "a binary op broadcasts, from the right": [G.add(f32(2, 1, 3), f32(4, 1)), [2, 4, 3]],
    "a number has none": [G.mul(f32(2), 3), [2]],
    "where broadcasts all three": [G.where(bool(2, 1), f32(3), f32(1, 1)), [2, 3]],
    "matmul, of matrices": [G.matmul(f32(2, 3), f32(3, 4)), [2, 4]],
    "matmul, transposed": [G.matmul(f32(3, 2), f32(4, 3), { transposeA: true, transposeB: true }), [2, 4]],
    "matmul, leading axes broadcast": [G.matmul(f32(5, 1, 2, 3), f32(6, 3, 4)), [5, 6, 2, 4]],
    "conv2d without padding": [G.conv2d(f32(2, 3, 8, 7), f32(4, 3, 3, 2)), [2, 4, 6, 6]],
    "conv2d, strided and padded": [
      G.conv2d(f32(2, 3, 8, 7), f32(4, 3, 3, 3), { strides: 2, padding: 1 }),
      [2, 4, 4, 4],
    ],
    "conv2d that keeps the size": [G.conv2d(f32(1, 1, 7, 8), f32(1, 1, 4, 3), { padding: "same" }), [1, 1, 7, 8]],
    "conv2d, same with strides": [
      G.conv2d(f32(1, 1, 7, 8), f32(1, 1, 3, 3), { strides: 2, padding: "same" }),
      [1, 1, 4, 4],
    ],
    "conv2d, padded unevenly": [G.conv2d(f32(1, 1, 4, 4), f32(1, 1, 3, 3), { padding: [2, 0, 1, 1] }), [1, 1, 5, 3]],
    "a reduction over all axes": [G.sum(f32(2, 3)), []],
    "a reduction over one axis": [G.mean(f32(2, 3, 4), 1), [2, 4]],
    "a reduction over axes from the end": [G.max(f32(2, 3, 4), [-1, 0]), [3]],
    "a reduction that keeps them": [G.min(f32(2, 3), 1, { keepDims: true }), [2, 1]],
    "argMax drops its axis": [G.argMax(f32(2, 3), 0), [3]],
    "softmax keeps all": [G.softmax(f32(2, 3)), [2, 3]],
    "cumSum keeps all": [G.cumSum(f32(2, 3), 0), [2, 3]],
    "reshape finds what is left": [G.reshape(f32(2, 6), [3, -1, 2]), [3, 2, 2]],
    flatten: [G.flatten(f32(2, 3)), [6]],
    "transpose swaps the last two": [G.transpose(f32(2, 3, 4)), [2, 4, 3]],
    "transpose, by a permutation": [G.transpose(f32(2, 3, 4), [1, 2, 0]), [3, 4, 2]],
    broadcastTo: [G.broadcastTo(f32(3, 1), [2, 3, 4]), [2, 3, 4]],
    slice: [G.slice(f32(5, 6), [1, 2], [3, 4]), [3, 4]],
    concat: [G.concat([f32(2, 3), f32(2, 4)], -1), [2, 7]],
    stack: [G.stack([f32(2, 3), f32(2, 3)], -1), [2, 3, 2]],
    "squeeze drops all of size 1": [G.squeeze(f32(1, 2, 1)), [2]],
    "squeeze drops the named": [G.squeeze(f32(1, 2, 1), [-1]), [1, 2]],
    "expandDims, from the end": [G.expandDims(f32(2, 3), -1), [2, 3, 1]],
    pad: [G.pad(f32(2, 3), [1, 0], [0, 2]), [3, 5]],
    "gather puts the indices' shape first": [G.gather(f32(7, 2), i32(3, 4)), [3, 4, 2]],
    scatterAdd: [G.scatterAdd(i32(3, 4), f32(3, 4, 2), 7), [7, 2]],
    oneHot: [G.oneHot(i32(3), 5), [3, 5]],
    logSumExp: [G.logSumExp(f32(2, 3)), [2]],
    variance: [G.variance(f32(2, 3), 0), [3]],
    layerNorm: [G.layerNorm(f32(2, 3), { scale: f32(3), shift: f32(3) }), [2, 3]],
    "six axes are allowed": [G.neg(f32(1, 2, 1, 2, 1, 2)), [1, 2, 1, 2, 1, 2]],
  }
  for (const [name, [tensor, shape]] of Object.entries(cases)) {
    it(name, () => assert.deepStrictEqual([...tensor.shape], [...shape]))
  }

  it("split cuts an axis into parts", () => {
    const parts = G.split(f32(2, 6), [1, 2, 3], -1)
    assert.deepStrictEqual(
      parts.map(({ shape }) => [...shape]),
      [
        [2, 1],
        [2, 2],
        [2, 3],
      ],
    )
  })
})

describe("kinds", () => {
  it("numbers take the dtype of the other operand", () => {
    assert.strictEqual(G.add(i32(2), 1).dtype, "i32")
    assert.strictEqual(G.add(1, f32(2)).dtype, "f32")
    assert.strictEqual(G.where(bool(2), 1, i32(2)).dtype, "i32")
  })

  it("comparisons are bool, argMax is i32, oneHot is f32", () => {
    assert.deepStrictEqual(
      [G.less(i32(2), 1).dtype, G.argMax(f32(2)).dtype, G.oneHot(i32(2), 3).dtype],
      ["bool", "i32", "f32"],
    )
  })

  it("a constant has the dtype of its typed array", () => {
    assert.deepStrictEqual(
      [Float32Array.of(1), Int32Array.of(1), Uint8Array.of(1)].map((data) => G.constant(data).dtype),
      ["f32", "i32", "bool"],
    )
  })

  it("a constant keeps its numbers when its source array changes", () => {
    const data = Float32Array.of(1, 2)
    const tensor = G.constant(data)
    data[0] = 9
    assert.deepStrictEqual(tensor.op, { kind: "constant", data: Float32Array.of(1, 2) })
  })
})

describe("ops that change nothing return their input", () => {
  const x = f32(2, 3)
  const same: Readonly<Record<string, Tensor>> = {
    "reshape to its own shape": G.reshape(x, [2, 3]),
    "transpose to its own order": G.transpose(x, [0, 1]),
    "broadcastTo its own shape": G.broadcastTo(x, [2, 3]),
    "slice of all": G.slice(x, [0, 0], [2, 3]),
    "concat of one": G.concat([x]),
    "pad by nothing": G.pad(x, [0, 0], [0, 0]),
    "cast to its own kind": G.cast(x, "f32"),
    "sum over no axes": G.sum(x, []),
  }
  for (const [name, tensor] of Object.entries(same)) it(name, () => assert.strictEqual(tensor, x))
})

describe("errors", () => {
  const wrong: Readonly<Record<string, readonly [() => unknown, RegExp]>> = {
    "shapes that do not broadcast": [
      () => G.add(f32(2, 3), f32(2)),
      /^add: shapes do not broadcast \(given \[2, 3\] and \[2\]\)/,
    ],
    "mixed kinds": [() => G.mul(f32(2), i32(2)), /^mul: cannot mix f32 and i32 \(given \[2\] and \[2\]\)/],
    "functions of integers": [() => G.exp(i32(2)), /^exp: expected f32, found i32/],
    "division of integers": [() => G.div(i32(2), i32(2)), /^div: expected f32, found i32/],
    "logic on numbers": [() => G.and(f32(2), f32(2)), /^and: expected bool, found f32/],
    "a fraction as an integer": [() => G.add(i32(2), 1.5), /^constant: expected i32, found 1.5/],
    "a condition of numbers": [() => G.where(f32(2), 1, 2), /^where: expected bool, found f32/],
    "bounds the wrong way round": [() => G.clip(f32(2), 1, 0), /^clip: the lower bound 1 is above the upper bound 0/],
    "inner sizes that differ": [
      () => G.matmul(f32(2, 3), f32(2, 3)),
      /^matmul: inner sizes 3 and 2 differ \(given \[2, 3\] and \[2, 3\]\)/,
    ],
    "a vector instead of a matrix": [
      () => G.matmul(f32(3), f32(3, 2)),
      /^matmul: expected at least two axes on both sides/,
    ],
    "leading axes that do not broadcast": [
      () => G.matmul(f32(2, 2, 3), f32(3, 3, 2)),
      /^matmul: leading axes do not broadcast/,
    ],
    "another number of channels than the kernel has": [
      () => G.conv2d(f32(1, 2, 4, 4), f32(1, 3, 2, 2)),
      /^conv2d: expected 3 channels, as the kernel has, found 2/,
    ],
    "a kernel that is too large": [() => G.conv2d(f32(1, 1, 2, 2), f32(1, 1, 3, 3)), /^conv2d: the kernel is larger/],
    "strides of 0": [
      () => G.conv2d(f32(1, 1, 2, 2), f32(1, 1, 1, 1), { strides: 0 }),
      /^conv2d: expected strides that are integers from 1 on, found 0/,
    ],
    "an axis that isn't there": [() => G.sum(f32(2, 3), 2), /^sum: there is no axis 2 \(given \[2, 3\]\)/],
    "a fractional axis": [() => G.cumSum(f32(2, 3), 0.5), /^cumSum: there is no axis 0.5/],
    "softmax of a scalar": [() => G.softmax(f32()), /^softmax: there is no axis -1/],
    "a shape of another size": [
      () => G.reshape(f32(2, 3), [4, -1]),
      /^reshape: expected a shape of the same size, found \[4, -1\] \(given \[2, 3\]\)/,
    ],
    "two sizes of −1": [() => G.reshape(f32(4), [-1, -1]), /^reshape: expected a shape of the same size/],
    "negative sizes": [() => G.reshape(f32(6), [-2, -3]), /^reshape: expected a shape of the same size/],
    "an order that leaves an axis out": [
      () => G.transpose(f32(2, 3), [0, 0]),
      /^transpose: expected an order of all axes, found \[0, 0\]/,
    ],
    "a broadcast of an axis that is not 1": [
      () => G.broadcastTo(f32(2), [3]),
      /^broadcastTo: cannot broadcast to \[3\]/,
    ],
    "a slice beyond the end": [
      () => G.slice(f32(3), [2], [2]),
      /^slice: \[2\] from \[2\] is not inside \(given \[3\]\)/,
    ],
    "parts that do not add up": [
      () => G.split(f32(5), [2, 2]),
      /^split: expected sizes that add up to axis 0, found \[2, 2\]/,
    ],
    "a concat of no tensors": [() => G.concat([]), /^concat: expected at least one tensor/],
    "a concat of different shapes": [
      () => G.concat([f32(2, 3), f32(3, 2)]),
      /^concat: expected shapes that are equal except along axis 0/,
    ],
    "a squeeze of an axis that is not 1": [
      () => G.squeeze(f32(2, 1), [0]),
      /^squeeze: expected axes of size 1 at \[0\]/,
    ],
    "negative padding": [
      () => G.pad(f32(2), [-1], [0]),
      /^pad: expected integers from 0 on for each axis, found \[-1\] before and \[0\] after/,
    ],
    "row indices that are fractions": [() => G.gather(f32(2), f32(2)), /^gather: expected i32, found f32/],
    "rows of a scalar": [() => G.gather(f32(), i32(2)), /^gather: a scalar has no rows/],
    "updates for other indices": [
      () => G.scatterAdd(i32(2), f32(3, 2), 4),
      /^scatterAdd: expected updates whose shape begins with/,
    ],
    "too many numbers for a shape": [
      () => G.constant([1, 2, 3], [2]),
      /^constant: expected numbers for shape \[2\], found 3/,
    ],
    "more than six axes": [() => f32(1, 1, 1, 1, 1, 1, 1), /^input: expected at most 6 axes/],
    "a size that is NaN": [
      () => f32(NaN),
      /^input: expected at most 6 axes, with sizes that are integers from 0 on, found shape \[NaN\]/,
    ],
    "a negative size": [() => G.state("s", [-1]), /^state: expected at most 6 axes/],
    "one-hot rows of fractional width": [() => G.oneHot(i32(2), 1.5), /^oneHot: expected at most 6 axes/],
  }
  for (const [name, [build, message]] of Object.entries(wrong)) {
    it(`name the problem: ${name}`, () => assert.match(errorOf(build).message, message))
  }

  it("name the op, the shapes and the line of the call", () => {
    const error = errorOf(() => G.sub(f32(4), f32(3)))
    assert.strictEqual(error._tag, "GraphError")
    assert.strictEqual(error.op, "sub")
    assert.deepStrictEqual(error.shapes, [[4], [3]])
    assert.match(error.where, /test[/\\]tensor[/\\]graph[/\\]ops\.test\.ts:\d+$/)
    assert.include(error.message, error.where)
  })

  it("name the user's line also for ops that consist of other ops", () => {
    assert.match(errorOf(() => G.layerNorm(f32(2, 3), { scale: f32(2) })).where, /ops\.test\.ts:\d+$/)
  })
})

describe("a constant", () => {
  it("refuses a number that its dtype cannot hold, alone or in an array", () => {
    const messageOf = (value: number | ReadonlyArray<number>, dtype: "bool" | "i32") =>
      errorOf(() => G.constant(value, undefined, dtype)).message
    for (const [value, dtype] of [
      [2, "bool"],
      [0.5, "i32"],
      [2 ** 40, "i32"],
    ] as const) {
      assert.include(messageOf(value, dtype), `expected ${dtype}, found ${value}`)
      assert.include(messageOf([0, value], dtype), `expected ${dtype}, found ${value}`)
    }
  })

  it("is a copy of its numbers", () => {
    const numbers = Float32Array.of(1, 2)
    const { op } = G.constant(numbers)
    numbers[0] = 5
    assert.deepStrictEqual(op.kind === "constant" ? [...op.data] : [], [1, 2])
  })
})
