import { assert, describe, it } from "@effect/vitest"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { countOps, simplify } from "../../../src/tensor/graph/simplify.ts"
import { type Shape, sizeOf, type Tensor, topologicalOrder } from "../../../src/tensor/graph/Tensor.ts"

const x = G.input("x", [2, 3])
const row = G.input("row", [3])
const column = G.input("column", [2, 1])
const i = G.input("i", [3], "i32")
const flag = G.input("flag", [2, 3], "bool")
const cube = G.input("cube", [2, 3, 2])
const other = G.input("other", [2, 3])
const inputs = { x, row, column, i, flag, cube, other }

const specOf = (y: Tensor) => ({ name: "y", inputs, state: {}, outputs: { y } })
const simple = (y: Tensor): Tensor => simplify(specOf(y)).outputs.y
const opsOf = (y: Tensor): ReadonlyArray<string> =>
  topologicalOrder([y])
    .filter(({ inputs }) => inputs.length > 0)
    .map(({ op }) => ("fn" in op ? op.fn : op.kind))

const leaves = new Map<Tensor, ReadonlyArray<number>>([
  [x, [1, -2, 3, -4, 5, 0.5]],
  [row, [7, -8, 9]],
  [column, [2, -3]],
  [i, [2, 0, 1]],
  [other, [0.5, 3, -1, 2, -7, 4]],
  [flag, [1, 0, 0, 1, 1, 0]],
  [cube, [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]],
])
const stretch = (y: Tensor, shape: Shape): Tensor => G.broadcastTo(y, shape)

describe("simplify reduces graphs to these ops", () => {
  const table: Readonly<Record<string, readonly [Tensor, ReadonlyArray<string>]>> = {
    "x + 0": [G.add(x, 0), []],
    "0 + x": [G.add(0, x), []],
    "x − 0": [G.sub(x, 0), []],
    "x · 1": [G.mul(x, 1), []],
    "x / 1": [G.div(x, 1), []],
    "x to the 1": [G.pow(x, 1), []],
    "x to the 2": [G.pow(x, 2), ["mul"]],
    "x + 0 that makes x larger": [G.add(row, G.constant(0, [2, 3])), ["add"]],
    "x · 0, where x may be infinite": [G.mul(x, 0), ["mul"]],
    "x · 0, where x is made of bools": [G.mul(G.cast(flag, "f32"), 0), []],
    "integer · 0": [G.add(G.mul(i, 0), i), []],
    "the lesser of x and x": [G.minimum(x, x), []],
    "−−x": [G.neg(G.neg(x)), []],
    "x + −y": [G.add(x, G.neg(row)), ["sub"]],
    "−x + y": [G.add(G.neg(x), row), ["sub"]],
    "x + y · −z": [G.add(x, G.mul(other, G.neg(row))), ["mul", "sub"]],
    "x − −y · z": [G.sub(x, G.mul(G.neg(other), row)), ["mul", "add"]],
    "x − −y": [G.sub(x, G.neg(row)), ["add"]],
    "−(x − y)": [G.neg(G.sub(x, row)), ["sub"]],
    "|−x|": [G.abs(G.neg(x)), ["abs"]],
    "relu of relu": [G.relu(G.relu(x)), ["relu"]],
    "x · 2 · 3 / 4": [G.div(G.mul(3, G.mul(x, 2)), 4), ["mul"]],
    "−(x · 2)": [G.neg(G.mul(x, 2)), ["mul"]],
    "x · −1": [G.mul(x, -1), ["neg"]],
    "x · 2 · ½": [G.mul(G.mul(x, 2), 0.5), []],
    "factors whose product is no float": [G.mul(G.mul(x, 1e-30), 1e-30), ["mul", "mul"]],
    "a clip of a clip": [G.clip(G.clip(x, -1, 4), 0, 2), ["clip"]],
    "a clip to everything": [G.clip(x, -Infinity, Infinity), []],
    "a bool as a number as a bool": [G.cast(G.cast(flag, "f32"), "bool"), []],
    "not not": [G.not(G.not(flag)), []],
    "not equal": [G.not(G.equal(x, row)), ["notEqual"]],
    "not less, which a NaN is neither": [G.not(G.less(x, row)), ["less", "not"]],
    "not less, of integers": [G.not(G.less(i, 1)), ["greaterEqual"]],
    "and true": [G.and(flag, G.constant([1], [], "bool")), []],
    "or itself": [G.or(flag, flag), []],
    "where not": [G.where(G.not(flag), x, row), ["where"]],
    "where always": [G.where(G.constant([1], [], "bool"), x, row), []],
    "where, both the same": [G.where(flag, x, x), []],
    stopGradient: [G.stopGradient(G.stopGradient(x)), []],
    "what constants make": [G.add(x, G.sqrt(G.sum(G.constant([1, 3])))), ["add"]],
    "what engines differ in, of a constant": [G.add(x, G.exp(G.neg(G.constant(1)))), ["exp", "add"]],
    "the same twice": [G.mul(G.add(G.tanh(x), row), G.add(row, G.tanh(x))), ["tanh", "add", "mul"]],
    "greater, and less from the other side": [G.and(G.greater(x, row), G.less(row, x)), ["greater"]],
    "constants that are equal": [
      G.mul(G.add(x, G.constant([1, 2, 3])), G.add(x, G.constant([1, 2, 3]))),
      ["add", "mul"],
    ],
    "constants that differ": [
      G.mul(G.add(x, G.constant([1, 2, 3])), G.add(x, G.constant([1, 2, 4]))),
      ["add", "add", "mul"],
    ],
    "clips that differ in nothing but the bound": [
      G.add(G.clip(x, -Infinity, 1), G.clip(x, -Infinity, 2)),
      ["clip", "clip", "add"],
    ],
    "a reshape of a reshape": [G.reshape(G.reshape(x, [6]), [3, 2]), ["reshape"]],
    "there and back": [G.reshape(G.reshape(x, [6]), [2, 3]), []],
    "a transpose of a transpose": [G.transpose(G.transpose(x)), []],
    "a turn of a turn of three axes": [G.transpose(G.transpose(cube, [1, 2, 0]), [0, 2, 1]), ["transpose"]],
    "a transpose that moves only an axis of size 1": [G.transpose(column), ["reshape"]],
    "a product of a transpose": [G.matmul(G.transpose(x), x), ["matmul"]],
    "a product with a transposed transpose": [
      G.matmul(G.transpose(x), G.transpose(x), { transposeB: true }),
      ["matmul"],
    ],
    "a stretch that the op would do": [G.mul(x, stretch(row, [2, 3])), ["mul"]],
    "a stretch of a number": [G.sub(stretch(G.sum(row), [2, 3]), x), ["sum", "sub"]],
    "a stretch that only reaches the end": [G.tanh(stretch(row, [2, 3])), ["tanh", "broadcastTo"]],
    "a row with an axis more": [G.mul(x, G.reshape(row, [1, 3])), ["mul"]],
    "a stretch to a lower rank than before": [
      stretch(G.reshape(G.slice(column, [0, 0], [1, 1]), [1]), [3]),
      ["slice", "reshape", "broadcastTo"],
    ],
    "an elementwise op of such a stretch": [
      G.tanh(stretch(G.reshape(G.slice(column, [0, 0], [1, 1]), [1]), [3])),
      ["slice", "reshape", "broadcastTo", "tanh"],
    ],
    "a stretch of a stretch": [stretch(stretch(row, [1, 3]), [2, 3]), ["broadcastTo"]],
    "a slice of a slice": [G.slice(G.slice(x, [0, 1], [2, 2]), [1, 0], [1, 1]), ["slice"]],
    "a slice of one part": [G.slice(G.concat([x, column], 1), [0, 1], [2, 2]), ["slice"]],
    "a whole part": [G.slice(G.concat([column, x], 1), [0, 1], [2, 3]), []],
    "a slice across parts": [G.slice(G.concat([x, column], 1), [0, 2], [2, 2]), ["concat", "slice"]],
    "a slice of what was padded": [G.slice(G.pad(x, [1, 0], [0, 1]), [1, 0], [2, 3]), []],
    "parts put together again": [G.concat(G.split(x, [1, 1, 1], 1), 1), []],
    "neighbours beside another": [G.concat([G.slice(row, [0], [1]), G.slice(row, [1], [1]), row]), ["slice", "concat"]],
    "a concat in a concat": [G.concat([G.concat([x, column], 1), x], 1), ["concat"]],
    "a sum over an axis of size 1": [G.sum(column, 1), ["reshape"]],
    "a maximum over axes of size 1, kept": [G.max(column, 1, { keepDims: true }), []],
    "a sum of sums": [G.sum(G.sum(x, 1)), ["sum"]],
    "a mean of means, the axes between them counted anew": [G.mean(G.mean(cube, 0), 1), ["mean"]],
    "a mean of means": [G.mean(G.mean(x, 0, { keepDims: true }), 1, { keepDims: true }), ["mean"]],
    "a sum of a mean": [G.sum(G.mean(x, 0)), ["mean", "sum"]],
    "a part of a constant vector": [G.slice(G.constant([1, 2, 3, 4]), [1], [2]), []],
    "columns of a constant matrix": [G.slice(G.constant([1, 2, 3, 4, 5, 6, 7, 8], [2, 4]), [0, 1], [2, 2]), []],
    "the sum of a stretched row, down": [G.sum(stretch(row, [2, 3]), 0), ["mul"]],
    "the mean of a stretched row, down": [G.mean(stretch(row, [2, 3]), 0), []],
    "the maximum of a stretched row, along": [G.max(stretch(row, [2, 3]), 1), ["max", "broadcastTo"]],
    "the sum of all of a stretched number": [G.sum(stretch(G.sum(row), [2, 3])), ["sum", "mul"]],
    "a running sum of one": [G.cumSum(column, 1), []],
    "the running sum before it": [G.cumSum(column, 1, { exclusive: true }), ["cumSum"]],
  }
  for (const [name, [y, expected]] of Object.entries(table)) {
    it(`of ${name}: ${expected.length === 0 ? "none" : expected.join(", ")}`, () => {
      const lean = simple(y)
      assert.deepStrictEqual(opsOf(lean), [...expected])
      assert.deepStrictEqual([...lean.shape], [...y.shape])
      const [before, after] = evaluate([y, lean], leaves)
      assert.strictEqual(after.length, sizeOf(y.shape))
      before.forEach((value, at) => assert.closeTo(after[at], value, 1e-5, `element ${at}`))
    })
  }
})

describe("simplify", () => {
  it("keeps infinities and NaNs that arithmetic produces", () => {
    const [[value]] = evaluate([simple(G.sum(G.mul(G.log(G.sub(row, row)), 0)))], leaves)
    assert.isNaN(value)
  })

  it("keeps inputs, states and outputs, also unused ones, and their names", () => {
    const s = G.state("s", [3])
    const spec = {
      name: "whole",
      inputs,
      state: { s: { tensor: s, next: G.add(G.mul(s, 1), 0) }, fixed: { tensor: G.state("fixed", []) } },
      outputs: { y: G.neg(G.neg(s)), z: G.tanh(row) },
      minibatches: { rows: 4, batch: 2, count: 1, gathered: ["x"], continueWhile: G.not(G.not(G.less(G.sum(s), 1))) },
    }
    const lean = simplify(spec)
    assert.strictEqual(lean.inputs, spec.inputs)
    assert.strictEqual(lean.state.s.tensor, s)
    assert.strictEqual(lean.state.s.next, s)
    assert.strictEqual(lean.state.fixed.tensor, spec.state.fixed.tensor)
    assert.isFalse("next" in lean.state.fixed)
    assert.strictEqual(lean.outputs.y, s)
    assert.strictEqual(lean.outputs.z, spec.outputs.z)
    assert.deepStrictEqual({ ...lean.minibatches, continueWhile: 0 }, { ...spec.minibatches, continueWhile: 0 })
    assert.deepStrictEqual(lean.minibatches?.continueWhile === undefined ? [] : opsOf(lean.minibatches.continueWhile), [
      "sum",
      "less",
    ])
  })

  it("returns a program that it cannot simplify unchanged", () => {
    const spec = specOf(G.tanh(G.add(x, row)))
    assert.strictEqual(simplify(spec), spec)
  })

  it("does not turn a small constant into a large one", () => {
    const lean = simple(G.gather(G.constant([1, 2]), G.constant(new Int32Array(3))))
    assert.strictEqual(lean.op.kind, "constant")
    const wide = simple(stretch(G.constant([1, 2, 3]), [2000, 3]))
    assert.strictEqual(wide.op.kind, "broadcastTo")
  })

  it("does not replace one op by two where a broadcast tensor is needed anyway", () => {
    const wide = stretch(row, [2, 3])
    const spec = specOf(G.add(G.sum(wide), G.sum(G.cumSum(wide, 0))))
    assert.isAtMost(countOps(simplify(spec)), countOps(spec))
  })

  it("counts ops without inputs, states and constants", () => {
    assert.strictEqual(countOps(specOf(G.add(x, G.mul(row, 2)))), 2)
  })
})
