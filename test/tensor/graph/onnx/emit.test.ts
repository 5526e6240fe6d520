import { assert, describe, it } from "@effect/vitest"
import { emit, feedInput, resultOutput, stateInput, stateOutput } from "../../../../src/tensor/graph/onnx/emit.ts"
import { Graph } from "../../../../src/tensor/graph/onnx/model.ts"
import { emitNodes } from "../../../../src/tensor/graph/onnx/nodes.ts"
import { counter, type Scope } from "../../../../src/tensor/graph/onnx/scope.ts"
import { gradients } from "../../../../src/tensor/graph/gradients.ts"
import * as G from "../../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../../src/tensor/graph/Program.ts"
import { simplify } from "../../../../src/tensor/graph/simplify.ts"
import type { Tensor } from "../../../../src/tensor/graph/Tensor.ts"

const scopeOf = (graph: Graph, runtimeOps = false): Scope => ({
  graph,
  constants: graph,
  names: new Map(leaves.map((leaf, i) => [leaf, `x${i}`])),
  fresh: counter(),
  runtimeOps,
  parallel: false,
})

/** The ops that tensors become. */
const nodesOf = (...roots: ReadonlyArray<Tensor>): ReadonlyArray<string> => {
  const graph = new Graph("test")
  emitNodes(scopeOf(graph), roots)
  return graph.nodes.map(({ op }) => op)
}

const x = G.input("x", [32, 4])
const w = G.state("w", [4, 8])
const b = G.state("b", [8])
const flat = G.state("flat", [44])
const leaves = [x, w, b, flat]

describe("nodes", () => {
  it("a product and its bias are one node", () => {
    assert.deepStrictEqual(nodesOf(G.add(G.matmul(x, w), b)), ["Gemm"])
    assert.deepStrictEqual(nodesOf(G.add(b, G.matmul(x, w))), ["Gemm"])
    // A column is no bias: Gemm would take it, but along the other axis.
    const transposed = G.matmul(w, x, { transposeA: true, transposeB: true })
    assert.deepStrictEqual(nodesOf(G.add(transposed, G.reshape(b, [8, 1]))), ["Gemm", "Reshape", "Add"])
  })

  it("a product and a matrix of its shape are one node, also if that is another product", () => {
    assert.deepStrictEqual(nodesOf(G.add(G.matmul(x, w), G.neg(G.matmul(x, w)))), ["Gemm", "Neg", "Gemm"])
    assert.deepStrictEqual(nodesOf(G.add(G.matmul(x, w), G.matmul(G.neg(x), w))), ["Neg", "Gemm", "Gemm"])
    // The product with shorter sums comes last.
    const short = G.matmul(G.slice(x, [0, 0], [32, 2]), G.slice(w, [0, 0], [2, 8]))
    for (const sum of [G.add(short, G.matmul(x, w)), G.add(G.matmul(x, w), short)]) {
      const graph = new Graph("test")
      emitNodes(scopeOf(graph), [sum])
      const [long, last] = graph.nodes.slice(-2)
      assert.deepStrictEqual(long.inputs, ["x0", "x1"])
      assert.strictEqual(last.inputs[2], long.outputs[0])
    }
    const stretched = G.add(G.matmul(G.slice(x, [0, 0], [1, 4]), w), G.matmul(x, w))
    assert.deepStrictEqual(nodesOf(stretched), ["Slice", "Gemm", "Gemm", "Add"])
  })

  it("a product with another user keeps its node", () => {
    const product = G.matmul(x, w)
    assert.deepStrictEqual(nodesOf(G.add(product, b), product), ["Gemm", "Add"])
  })

  it("slices that together are a tensor are one node", () => {
    assert.deepStrictEqual(nodesOf(...G.split(flat, [32, 8, 4])), ["Split"])
    assert.deepStrictEqual(nodesOf(G.slice(flat, [0], [32]), G.slice(flat, [40], [4])), ["Slice", "Slice"])
    assert.deepStrictEqual(nodesOf(...G.split(w, [3, 5], 1)), ["Split"])
  })

  it("a sum of squares is one node", () => {
    assert.deepStrictEqual(nodesOf(G.sum(G.square(w), 1)), ["ReduceSumSquare"])
  })

  it("sums of long columns are products with ones", () => {
    const wide = G.broadcastTo(b, [32, 8])
    assert.deepStrictEqual(nodesOf(G.sum(wide, 0)), ["Expand", "MatMul"])
    assert.deepStrictEqual(nodesOf(G.sum(wide, 1)), ["Expand", "ReduceSum"])
  })

  it("equal constants are shared", () => {
    const graph = new Graph("test")
    emitNodes(scopeOf(graph), [G.add(b, 2), G.mul(b, 2), G.add(b, 3)])
    assert.strictEqual(graph.initializers.length, 2)
  })
})

describe("nodes that only ONNX Runtime has", () => {
  const heads = G.input("heads", [2, 5, 3, 8])
  const cos = G.input("cos", [2, 5, 1, 4])
  const sin = G.input("sin", [2, 5, 1, 4])
  const inputs = { heads, cos, sin }
  const rotated = (x: Tensor, first: typeof G.sub = G.sub, second = G.add): Tensor => {
    const [a, b] = G.split(x, [4, 4], 3)
    return G.concat([first(G.mul(a, cos), G.mul(sin, b)), second(G.mul(b, cos), G.mul(a, sin))], 3)
  }
  const nodes = (y: Tensor, runtimeOps = true, read: ProgramSpec["inputs"] = inputs): ReadonlyArray<string> => {
    const graph = new Graph("test")
    const names = new Map(Object.entries(read).map(([name, tensor]) => [tensor, name]))
    const { outputs } = simplify({ name: "test", inputs: read, state: {}, outputs: { y } })
    emitNodes({ ...scopeOf(graph, runtimeOps), names }, [outputs["y"]])
    return graph.nodes.map(({ op }) => op)
  }

  it("a rotation of heads is one", () => {
    const rotation = ["Reshape", "Reshape", "Reshape", "RotaryEmbedding", "Reshape"]
    assert.deepStrictEqual(nodes(rotated(heads)), rotation)
    // Its gradient rotates back.
    const [slope] = gradients(G.sum(G.mul(rotated(heads), G.stopGradient(heads))), [heads])
    assert.deepStrictEqual(nodes(slope), ["Neg", ...rotation])
  })

  it("what is not quite a rotation of heads is none", () => {
    const split = ["Split", "Mul", "Mul", "Mul", "Mul"]
    assert.deepStrictEqual(nodes(rotated(heads, G.sub, G.sub)), [
      ...split.slice(0, 3),
      "Sub",
      "Mul",
      "Mul",
      "Sub",
      "Concat",
    ])
    assert.isFalse(nodes(rotated(heads, (cosines, sines) => G.sub(sines, cosines))).includes("RotaryEmbedding"))
    assert.isFalse(nodes(rotated(heads), false).includes("RotaryEmbedding"))
    const [a, b] = G.split(heads, [4, 4], 3)
    const others = G.concat([G.sub(G.mul(a, cos), G.mul(b, sin)), G.add(G.mul(b, cos), G.mul(a, cos))], 3)
    assert.isFalse(nodes(others).includes("RotaryEmbedding"))
  })

  it("a half that something else reads keeps its node", () => {
    const [a] = G.split(heads, [4, 4], 3)
    const used = nodes(G.mul(rotated(heads), G.concat([a, G.exp(a)], 3)))
    assert.isTrue(used.includes("RotaryEmbedding"))
    assert.isTrue(used.includes("Split"))
  })

  it("a normalisation to a root mean square of 1 is one, and gives its gradient what it needs", () => {
    const [wide, scale] = [G.input("wide", [5, 8]), G.input("scale", [8])]
    const leaves = { wide, scale }
    const normal = G.rmsNorm(wide, { scale })
    assert.deepStrictEqual(nodes(normal, true, leaves), ["SimplifiedLayerNormalization"])
    assert.notInclude(nodes(normal, false, leaves), "SimplifiedLayerNormalization")
    const [slope] = gradients(G.sum(G.exp(normal)), [wide])
    const both = nodes(slope, true, leaves)
    assert.strictEqual(both.filter((op) => op === "SimplifiedLayerNormalization").length, 1)
    assert.notInclude(both, "Sqrt")
    // Without a scale, and with one that is computed, the nodes stay.
    assert.include(nodes(G.rmsNorm(wide), true, leaves), "Sqrt")
    assert.include(nodes(G.rmsNorm(wide, { scale: G.exp(scale) }), true, leaves), "Sqrt")
    // Another user needs the tensor before the scale.
    const before = G.rmsNorm(wide)
    assert.include(nodes(G.add(G.mul(before, scale), before), true, leaves), "Sqrt")
  })

  it("a batched product reads a transposed side as it is", () => {
    const product = G.matmul(heads, G.exp(heads), { transposeB: true })
    assert.deepStrictEqual(nodes(product), ["Exp", "FusedMatMul"])
    assert.deepStrictEqual(nodes(product, false), ["Exp", "Transpose", "MatMul"])
  })

  it("a narrow product with a wide transposed side is the transpose of another one", () => {
    const wide = G.broadcastTo(G.reshape(cos, [40, 1]), [40, 2048])
    const narrow = G.reshape(sin, [40, 1])
    const product = (columns: number): Tensor =>
      G.matmul(G.exp(wide), G.exp(G.broadcastTo(narrow, [40, columns])), { transposeA: true })
    assert.deepStrictEqual(nodes(product(8)).slice(-2), ["FusedMatMul", "Transpose"])
    assert.deepStrictEqual(nodes(product(2048)).slice(-1), ["Gemm"])
    assert.deepStrictEqual(nodes(product(8), false).slice(-1), ["Gemm"])
  })
})

describe("a model", () => {
  it("names its inputs and outputs", () => {
    const spec: ProgramSpec = {
      name: "named",
      inputs: { x },
      state: { w: { tensor: w, next: G.mul(w, 0.5) }, b: { tensor: b } },
      outputs: { y: G.add(G.matmul(x, w), b) },
    }
    const { inputs, outputs, nodeCount } = emit(spec)
    assert.deepStrictEqual(inputs, [feedInput("x"), stateInput("w"), stateInput("b")])
    assert.deepStrictEqual(outputs, [stateOutput("w"), resultOutput("y")])
    assert.strictEqual(nodeCount, 2)
  })

  it("has the same bytes for the same program", () => {
    const spec = (): ProgramSpec => {
      const z = G.input("z", [3])
      return { name: "same", inputs: { z }, state: {}, outputs: { y: G.tanh(G.add(z, 1)) } }
    }
    assert.deepStrictEqual(emit(spec()).bytes, emit(spec()).bytes)
  })

  it("has in the loop only what the next state depends on", () => {
    const rows = G.input("rows", [4, 2])
    const theta = G.state("theta", [2])
    const steps = G.state("steps", [])
    const step = G.add(steps, 1)
    const normal = G.div(G.sub(rows, G.mean(rows, 0)), G.add(G.sqrt(G.mean(G.square(rows))), 1e-3))
    const error = G.sub(G.mul(normal, theta), 1)
    const rate = G.div(1, G.sqrt(step))
    const next = G.sub(theta, G.mul(G.sum(error, 0), rate))
    const spec: ProgramSpec = {
      name: "lean",
      inputs: { rows },
      state: { theta: { tensor: theta, next }, steps: { tensor: steps, next: step } },
      outputs: { loss: G.mean(G.abs(error)), rate },
      minibatches: { rows: 8, batch: 4, count: 3, gathered: ["rows"] },
    }
    // mul, sub, sum, mul, sub
    assert.strictEqual(emit(spec).nodeCount, 5)
  })
})
