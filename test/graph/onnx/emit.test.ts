import { assert, describe, it } from "@effect/vitest"
import { emit, feedInput, resultOutput, stateInput, stateOutput } from "../../../src/graph/onnx/emit.ts"
import { Graph } from "../../../src/graph/onnx/model.ts"
import { counter, emitNodes } from "../../../src/graph/onnx/nodes.ts"
import * as G from "../../../src/graph/ops.ts"
import type { ProgramSpec } from "../../../src/graph/Program.ts"
import type { Tensor } from "../../../src/graph/Tensor.ts"

/** The ops that tensors become. */
const nodesOf = (...roots: ReadonlyArray<Tensor>): ReadonlyArray<string> => {
  const graph = new Graph("test")
  emitNodes(
    { graph, constants: graph, names: new Map(leaves.map((leaf, i) => [leaf, `x${i}`])), fresh: counter() },
    roots,
  )
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
    const scope = { graph, constants: graph, names: new Map([[b, "b"]]), fresh: counter() }
    emitNodes(scope, [G.add(b, 2), G.mul(b, 2), G.add(b, 3)])
    assert.strictEqual(graph.initializers.length, 2)
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
