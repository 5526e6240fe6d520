import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer, Record, Result } from "effect"
import * as fc from "fast-check"
import { Backend } from "../src/tensor/backend/Backend.ts"
import * as Reference from "../src/tensor/backend/reference.ts"
import * as Wasm from "../src/tensor/backend/wasm.ts"
import { decodeNodes, type EncodedNodes, encodeNodes } from "../src/tensor/graph/encoded.ts"
import { GraphError } from "../src/tensor/graph/GraphError.ts"
import type { ProgramSpec } from "../src/tensor/graph/Program.ts"
import { type Tensor, topologicalOrder } from "../src/tensor/graph/Tensor.ts"
import { rootsOf } from "../src/tensor/graph/validate.ts"
import { tries } from "../test/house/tries.ts"
import { checkEveryOp } from "./support/everyOp.ts"
import { choices, grow } from "./support/randomGraph.ts"

/** Returns the roots of a program's graph: everything that it reads and computes. */
const allOf = (spec: ProgramSpec): ReadonlyArray<Tensor> => [
  ...Object.values(spec.inputs),
  ...Object.values(spec.state).map(({ tensor }) => tensor),
  ...rootsOf(spec),
]

/** Describes a graph without the ids of its tensors. */
const described = (roots: ReadonlyArray<Tensor>): ReadonlyArray<object> => {
  const order = topologicalOrder(roots)
  const positions = new Map(order.map((tensor, at) => [tensor, at]))
  return order.map(({ op, inputs, shape, dtype }) => ({
    op,
    inputs: inputs.map((input) => positions.get(input)),
    shape,
    dtype,
  }))
}

describe("a graph that was encoded and decoded", () => {
  it("has the same nodes, whatever its ops", () => {
    const check = (spec: ProgramSpec): void => {
      const { nodes, constants } = encodeNodes(allOf(spec))
      const decoded = decodeNodes(nodes, (at) => constants.get(at) ?? assert.fail("expected a constant"))
      assert.deepStrictEqual(described(decoded), described(allOf(spec)))
    }
    checkEveryOp([5, 5], 3, check)
    fc.assert(
      fc.property(choices, (picked) => check(grow(picked, { bytes: true }))),
      { numRuns: tries(100) },
    )
  })
})

type Node = EncodedNodes[number]

/** Ways to change a node, by two numbers. */
const changes: ReadonlyArray<(node: Node, n: number, m: number) => Node> = [
  (node, n, m) => ({ ...node, shape: node.shape.map((size, axis) => (axis === n % node.shape.length ? m - 2 : size)) }),
  (node, n) => ({ ...node, shape: [...node.shape, n] }),
  (node) => ({ ...node, shape: node.shape.slice(1) }),
  (node, n) => ({ ...node, dtype: (["f32", "i32", "bool"] as const)[n % 3] }),
  (node) => ({ ...node, inputs: node.inputs.slice(1) }),
  (node) => ({ ...node, inputs: [...node.inputs, 0] }),
  (node, n, m) => ({ ...node, inputs: node.inputs.map((at, index) => (index === n % 2 ? at - m : at)) }),
  (node, n, m) => ({ ...node, op: otherNumbers(node.op, n, m) }),
]

/** Changes the numbers and lists of an op, such as its axes. */
const otherNumbers = (op: Node["op"], n: number, m: number): Node["op"] => {
  switch (op.kind) {
    case "reduce":
      return { ...op, axes: [n - 3, m - 3] }
    case "argMax":
    case "cumSum":
    case "concat":
      return { ...op, axis: m - 3 }
    case "transpose":
      return { ...op, permutation: [n, m] }
    case "slice":
      return { ...op, starts: op.starts.map((start) => start + m - 3) }
    case "pad":
      return { ...op, before: op.before.map(() => m - 3) }
    case "oneHot":
      return { ...op, depth: m - 3 }
    case "matmul":
      return { ...op, transposeA: n % 2 === 0, transposeB: m % 2 === 0 }
    case "conv2d":
    case "conv2dInputGrad":
    case "conv2dWeightGrad":
      return n % 2 === 0 ? { ...op, strides: [m - 2, n] } : { ...op, padding: [m - 3, n, n, m] }
    default:
      return op
  }
}

/** Compiles and runs a program, unless the backend refuses it by a GraphError. Throws any other failure. */
const runWith = (layer: Layer.Layer<Backend>, spec: ProgramSpec): void =>
  Effect.gen(function* () {
    const program = yield* (yield* Backend).compile(spec)
    yield* program.run
  }).pipe(
    Effect.catchTag("GraphError", () => Effect.void),
    Effect.scoped,
    Effect.provide(layer),
    Effect.runSync,
  )

/** The numbers that choose a change: of a node, of the kind of change, and of what it becomes. */
type Choice = readonly [at: number, change: number, n: number, m: number]

/** Decodes a program one of whose nodes is changed, and runs it. Returns `refused` if it is refused as it must be. */
const outcomeOf = (spec: ProgramSpec, [at, change, n, m]: Choice): "refused" | "ran" => {
  const { nodes, constants, positionOf } = encodeNodes(allOf(spec))
  const position = at % nodes.length
  const changed = nodes.with(position, changes[change % changes.length](nodes[position], n, m))
  const decoded = Result.try(() => decodeNodes(changed, (one) => constants.get(one) ?? new Float32Array(0)))
  if (Result.isFailure(decoded)) {
    assert.instanceOf(decoded.failure, GraphError)
    assert.match(decoded.failure.message, /node -?\d+/)
    return "refused"
  }
  const tensorOf = (tensor: Tensor): Tensor => decoded.success[positionOf(tensor)]
  const again: ProgramSpec = {
    name: spec.name,
    inputs: Record.map(spec.inputs, tensorOf),
    state: Record.map(spec.state, ({ tensor }) => ({ tensor: tensorOf(tensor) })),
    outputs: Record.map(spec.outputs, tensorOf),
  }
  for (const layer of [Reference.layer, Wasm.layer]) runWith(layer, again)
  return "ran"
}

describe("a graph with a changed node", () => {
  it("is refused by a GraphError that names the node, or is a graph that runs", () => {
    const outcomes = { refused: 0, ran: 0 }
    checkEveryOp([3, 3], 1, (spec) => {
      const count = encodeNodes(allOf(spec)).nodes.length
      for (let at = 0; at < count; at++)
        for (let change = at % 4; change < changes.length; change += 4)
          outcomes[outcomeOf(spec, [at, change, at % 7, (at + change) % 5])]++
    })
    const choice = fc.tuple(fc.nat(1000), fc.nat(1000), fc.nat(6), fc.nat(6))
    fc.assert(
      fc.property(choices, choice, (picked, one) => void outcomes[outcomeOf(grow(picked), one)]++),
      { numRuns: tries(40) },
    )
    assert.isAbove(outcomes.refused, outcomes.ran)
    assert.isAbove(outcomes.ran, 0)
  })
})
