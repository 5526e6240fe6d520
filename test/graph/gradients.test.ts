import { assert, describe, it } from "@effect/vitest"
import { evaluate } from "../../src/graph/evaluate.ts"
import { gradients } from "../../src/graph/gradients.ts"
import { GraphError } from "../../src/graph/GraphError.ts"
import * as G from "../../src/graph/ops.ts"
import { type Tensor, topologicalOrder } from "../../src/graph/Tensor.ts"

const f = (values: ReadonlyArray<number>, shape?: ReadonlyArray<number>): Tensor => G.constant(values, shape)

/** The slope of a sum. */
const slopeOf = (build: (x: Tensor) => Tensor, at: ReadonlyArray<number>, shape?: ReadonlyArray<number>) => {
  const x = f(at, shape)
  const [slope] = gradients(G.sum(build(x)), [x])
  return [...evaluate([slope])[0]]
}

/** Ops that a slope takes beyond those of the loss itself. */
const opsFor = (loss: Tensor, x: Tensor): ReadonlyArray<string> => {
  const own = new Set(topologicalOrder([loss]))
  return topologicalOrder(gradients(loss, [x]))
    .filter((tensor) => !own.has(tensor) && tensor.inputs.length > 0)
    .map(({ op }) => ("fn" in op ? op.fn : op.kind))
}

describe("at kinks and ties", () => {
  it("the largest of equals share the slope", () => {
    assert.deepStrictEqual(
      slopeOf((x) => G.max(x), [1, 3, 3]),
      [0, 0.5, 0.5],
    )
    assert.deepStrictEqual(
      slopeOf((x) => G.min(x, 1), [2, 2, 1, 5], [2, 2]),
      [0.5, 0.5, 1, 0],
    )
  })

  it("both sides of a tie get half", () => {
    const [a, b] = [f([1, 2, 3]), f([2, 2, 2])]
    const slopes = evaluate(gradients(G.sum(G.minimum(a, b)), [a, b])).map((slope) => [...slope])
    assert.deepStrictEqual(slopes, [
      [1, 0.5, 0],
      [0, 0.5, 1],
    ])
  })

  it("of itself, a minimum has the whole slope", () => {
    assert.deepStrictEqual(
      slopeOf((x) => G.minimum(x, x), [4]),
      [1],
    )
  })

  it("clip passes the slope on its bounds and inside", () => {
    assert.deepStrictEqual(
      slopeOf((x) => G.clip(x, -1, 1), [-2, -1, 0, 1, 2]),
      [0, 1, 1, 1, 0],
    )
  })

  it("relu is flat at zero, abs too", () => {
    assert.deepStrictEqual(
      slopeOf((x) => G.relu(x), [-1, 0, 1]),
      [0, 0, 1],
    )
    assert.deepStrictEqual(
      slopeOf((x) => G.abs(x), [-1, 0, 1]),
      [-1, 0, 1],
    )
  })

  it("x to the 2 has a slope at negative x, and the exponent none there", () => {
    const [x, two] = [f([-3]), f([2])]
    const slopes = evaluate(gradients(G.sum(G.pow(x, two)), [x, two])).map((slope) => [...slope])
    assert.deepStrictEqual(slopes, [[-6], [0]])
  })
})

describe("paths", () => {
  it("a tensor used often gets the sum of what all uses give", () => {
    assert.deepStrictEqual(
      slopeOf((x) => G.add(G.mul(x, 3), G.add(G.square(x), x)), [1, 2]),
      [6, 8],
    )
  })

  it("indices, comparisons and casts of them let none through", () => {
    assert.deepStrictEqual(
      slopeOf((x) => G.mul(x, G.cast(G.greater(x, 0), "f32")), [-1, 2]),
      [0, 1],
    )
  })

  it("may be taken of slopes: the second derivative of x⁴ is 12 x²", () => {
    const x = f([1, 2])
    const [first] = gradients(G.sum(G.square(G.square(x))), [x])
    const [second] = gradients(G.sum(first), [x])
    assert.deepStrictEqual([...evaluate([second])[0]], [12, 48])
  })

  it("may end in tensors between the loss and the leaves", () => {
    const x = f([1, 2])
    const y = G.mul(x, 3)
    const [slope] = gradients(G.sum(G.square(y)), [y])
    assert.deepStrictEqual([...evaluate([slope])[0]], [6, 12])
  })

  it("are zeros of the right shape where there is none", () => {
    const [x, y] = [f([1, 2]), f([1, 2, 3], [3, 1])]
    const [, slope] = gradients(G.sum(x), [x, y])
    assert.deepStrictEqual([...slope.shape], [3, 1])
    assert.deepStrictEqual([...evaluate([slope])[0]], [0, 0, 0])
  })

  it("want a scalar to begin with", () => {
    const x = f([1, 2])
    assert.throws(() => gradients(x, [x]), GraphError, /gradients: the loss must be a scalar \(given \[2\]\)/)
  })
})

describe("few ops", () => {
  const x = G.input("x", [8, 4])
  const w = G.state("w", [4, 3])
  const bias = G.state("bias", [3])

  it("a linear layer's weights: one product beyond the slope of its output", () => {
    const y = G.matmul(x, w)
    const loss = G.sum(G.mul(y, G.input("v", [8, 3])))
    // Stretching the loss's slope over the products, its product with v, and the matrix product.
    assert.deepStrictEqual(opsFor(loss, w), ["broadcastTo", "mul", "matmul"])
  })

  it("a bias: one sum", () => {
    const y = G.add(G.matmul(x, w), bias)
    const loss = G.sum(G.mul(y, G.input("v", [8, 3])))
    assert.deepStrictEqual(opsFor(loss, bias), ["broadcastTo", "mul", "sum"])
  })

  it("tanh, by what it gave: three ops", () => {
    assert.deepStrictEqual(opsFor(G.sum(G.tanh(x)), x), ["broadcastTo", "mul", "sub", "mul"])
  })

  it("a scalar that was stretched: one sum over all axes", () => {
    const s = G.state("s", [])
    assert.deepStrictEqual(opsFor(G.sum(G.mul(x, s)), s), ["broadcastTo", "mul", "sum"])
  })

  it("a column that was stretched: a sum that keeps the axis, no reshape", () => {
    const column = G.state("column", [8, 1])
    assert.deepStrictEqual(opsFor(G.sum(G.mul(x, column)), column), ["broadcastTo", "mul", "sum"])
  })

  it("the parts of a flat vector: one concat, gaps filled with zeros", () => {
    const theta = G.state("theta", [9])
    const parts = [G.slice(theta, [5], [3]), G.slice(theta, [0], [4])]
    const loss = G.add(G.sum(G.tanh(parts[0])), G.sum(G.sin(parts[1])))
    const ops = opsFor(loss, theta)
    assert.strictEqual(ops.filter((op) => op === "concat").length, 1)
    assert.notInclude(ops, "pad")
    assert.notInclude(ops, "add")
  })

  it("flat functions add nothing", () => {
    assert.deepStrictEqual(opsFor(G.sum(G.add(G.mul(x, 2), G.sign(x))), x), ["broadcastTo", "mul"])
  })

  it("what no wanted tensor leads to is not differentiated", () => {
    assert.deepStrictEqual(opsFor(G.add(G.sum(G.exp(x)), G.sum(bias)), bias), ["broadcastTo"])
  })
})
