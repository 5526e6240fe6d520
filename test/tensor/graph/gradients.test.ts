import { assert, describe, it } from "@effect/vitest"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { type Tensor, topologicalOrder } from "../../../src/tensor/graph/Tensor.ts"

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
  it("equal maxima share the gradient", () => {
    assert.deepStrictEqual(
      slopeOf((x) => G.max(x), [1, 3, 3]),
      [0, 0.5, 0.5],
    )
    assert.deepStrictEqual(
      slopeOf((x) => G.min(x, 1), [2, 2, 1, 5], [2, 2]),
      [0.5, 0.5, 1, 0],
    )
  })

  it("both sides of a tie get half of the gradient", () => {
    const [a, b] = [f([1, 2, 3]), f([2, 2, 2])]
    const slopes = evaluate(gradients(G.sum(G.minimum(a, b)), [a, b])).map((slope) => [...slope])
    assert.deepStrictEqual(slopes, [
      [1, 0.5, 0],
      [0, 0.5, 1],
    ])
  })

  it("the minimum of a tensor and itself passes the whole gradient", () => {
    assert.deepStrictEqual(
      slopeOf((x) => G.minimum(x, x), [4]),
      [1],
    )
  })

  it("clip passes the gradient at its bounds and between them", () => {
    assert.deepStrictEqual(
      slopeOf((x) => G.clip(x, -1, 1), [-2, -1, 0, 1, 2]),
      [0, 1, 1, 1, 0],
    )
  })

  it("relu and abs have gradient 0 at 0", () => {
    assert.deepStrictEqual(
      slopeOf((x) => G.relu(x), [-1, 0, 1]),
      [0, 0, 1],
    )
    assert.deepStrictEqual(
      slopeOf((x) => G.abs(x), [-1, 0, 1]),
      [-1, 0, 1],
    )
  })

  it("x to the power 2 has a gradient at negative x, and its exponent has none there", () => {
    const [x, two] = [f([-3]), f([2])]
    const slopes = evaluate(gradients(G.sum(G.pow(x, two)), [x, two])).map((slope) => [...slope])
    assert.deepStrictEqual(slopes, [[-6], [0]])
  })
})

describe("paths", () => {
  it("a tensor with several users gets the sum of their gradients", () => {
    assert.deepStrictEqual(
      slopeOf((x) => G.add(G.mul(x, 3), G.add(G.square(x), x)), [1, 2]),
      [6, 8],
    )
  })

  it("no gradient flows through indices, comparisons and casts", () => {
    assert.deepStrictEqual(
      slopeOf((x) => G.mul(x, G.cast(G.greater(x, 0), "f32")), [-1, 2]),
      [0, 1],
    )
  })

  it("gradients of gradients work: the second derivative of x⁴ is 12 x²", () => {
    const x = f([1, 2])
    const [first] = gradients(G.sum(G.square(G.square(x))), [x])
    const [second] = gradients(G.sum(first), [x])
    assert.deepStrictEqual([...evaluate([second])[0]], [12, 48])
  })

  it("gradients can be taken at tensors between loss and inputs", () => {
    const x = f([1, 2])
    const y = G.mul(x, 3)
    const [slope] = gradients(G.sum(G.square(y)), [y])
    assert.deepStrictEqual([...evaluate([slope])[0]], [6, 12])
  })

  it("gradients are zeros of the right shape where the loss does not depend on a tensor", () => {
    const [x, y] = [f([1, 2]), f([1, 2, 3], [3, 1])]
    const [, slope] = gradients(G.sum(x), [x, y])
    assert.deepStrictEqual([...slope.shape], [3, 1])
    assert.deepStrictEqual([...evaluate([slope])[0]], [0, 0, 0])
  })

  it("gradients need a scalar loss", () => {
    const x = f([1, 2])
    assert.throws(() => gradients(x, [x]), GraphError, /gradients: the loss must be a scalar \(given \[2\]\)/)
  })
})

describe("with respect to a tensor between the inputs and the loss", () => {
  it("is the whole gradient, also of the sigmoid in a silu", () => {
    const x = f([-1, 0, 2])
    const gate = G.sigmoid(x)
    for (const product of [G.mul(x, gate), G.mul(gate, x)]) {
      const [ofGate, ofX] = evaluate(gradients(G.sum(product), [gate, x]))
      assert.deepStrictEqual([...ofGate], [-1, 0, 2])
      const [alone] = evaluate(gradients(G.sum(product), [x]))
      ofX.forEach((slope, at) => assert.closeTo(Number(slope), Number(alone[at]), 1e-6))
    }
  })
})

describe("few ops", () => {
  const x = G.input("x", [8, 4])
  const w = G.state("w", [4, 3])
  const bias = G.state("bias", [3])

  it("the weights of a linear layer take one product", () => {
    const y = G.matmul(x, w)
    const loss = G.sum(G.mul(y, G.input("v", [8, 3])))
    // Stretching the loss's slope over the products, its product with v, and the matrix product.
    assert.deepStrictEqual(opsFor(loss, w), ["broadcastTo", "mul", "matmul"])
  })

  it("a bias takes one sum", () => {
    const y = G.add(G.matmul(x, w), bias)
    const loss = G.sum(G.mul(y, G.input("v", [8, 3])))
    assert.deepStrictEqual(opsFor(loss, bias), ["broadcastTo", "mul", "sum"])
  })

  it("tanh takes three ops, from its output", () => {
    assert.deepStrictEqual(opsFor(G.sum(G.tanh(x)), x), ["broadcastTo", "mul", "sub", "mul"])
  })

  it("silu takes four ops, from its output and its sigmoid", () => {
    const ops = ["broadcastTo", "sub", "mul", "add", "mul"]
    assert.deepStrictEqual(opsFor(G.sum(G.silu(x)), x), ops)
    assert.deepStrictEqual(opsFor(G.sum(G.mul(G.sigmoid(x), x)), x), ops)
  })

  it("a broadcast scalar takes one sum over all axes", () => {
    const s = G.state("s", [])
    assert.deepStrictEqual(opsFor(G.sum(G.mul(x, s)), s), ["broadcastTo", "mul", "sum"])
  })

  it("a broadcast column takes one sum that keeps the axis, and no reshape", () => {
    const column = G.state("column", [8, 1])
    assert.deepStrictEqual(opsFor(G.sum(G.mul(x, column)), column), ["broadcastTo", "mul", "sum"])
  })

  it("the parts of a flat vector take one concat, with zeros in gaps", () => {
    const theta = G.state("theta", [9])
    const parts = [G.slice(theta, [5], [3]), G.slice(theta, [0], [4])]
    const loss = G.add(G.sum(G.tanh(parts[0])), G.sum(G.sin(parts[1])))
    const ops = opsFor(loss, theta)
    assert.strictEqual(ops.filter((op) => op === "concat").length, 1)
    assert.notInclude(ops, "pad")
    assert.notInclude(ops, "add")
  })

  it("functions with gradient 0 take no ops", () => {
    assert.deepStrictEqual(opsFor(G.sum(G.add(G.mul(x, 2), G.sign(x))), x), ["broadcastTo", "mul"])
  })

  it("tensors that do not depend on a wanted tensor are not differentiated", () => {
    assert.deepStrictEqual(opsFor(G.add(G.sum(G.exp(x)), G.sum(bias)), bias), ["broadcastTo"])
  })
})
