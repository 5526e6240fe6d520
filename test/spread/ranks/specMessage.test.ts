import { assert, describe, it } from "@effect/vitest"
import * as G from "../../../src/tensor/graph/ops.ts"
import { type Tensor, topologicalOrder } from "../../../src/tensor/graph/Tensor.ts"
import type { SlicedSpec } from "../../../src/spread/ranks/Ranks.ts"
import { decodeSpec, encodeSpec } from "../../../src/spread/ranks/specMessage.ts"

/** A graph with infinite limits, constants of all types, and a tensor that two others read. */
const specOf = (): SlicedSpec => {
  const x = G.input("x", [6, 4])
  const row = G.input("row", [6], "i32")
  const theta = G.state("theta", [4, 3])
  const product = G.matmul(x, theta)
  const bounded = G.clip(product, -Infinity, 0.5)
  const chosen = G.where(G.less(product, bounded), G.constant([1, 2, 3]), G.tanh(product))
  const hot = G.oneHot(G.add(row, G.constant(Int32Array.of(1, 1, 1, 1, 1, 1))), 3)
  return {
    name: "test.gradient",
    inputs: { x, row },
    state: { theta: { tensor: theta } },
    outputs: { gradient: G.sum(G.mul(chosen, hot), 0), loss: G.mean(bounded) },
    minibatches: { rows: 24, batch: 6, count: 1, gathered: ["x", "row"] },
  }
}

/** Describes a graph without the ids of its tensors, which differ between processes. */
const described = ({ inputs, state, outputs, ...rest }: SlicedSpec) => {
  const tensors = topologicalOrder([
    ...Object.values(inputs),
    ...Object.values(state).map(({ tensor }) => tensor),
    ...Object.values(outputs),
  ])
  const at = (tensor: Tensor): number => tensors.indexOf(tensor)
  const named = (entries: Readonly<Record<string, Tensor>>) =>
    Object.entries(entries).map(([name, tensor]) => [name, at(tensor)])
  return {
    ...rest,
    nodes: tensors.map(({ op, inputs: read, shape, dtype }): object => ({ op, read: read.map(at), shape, dtype })),
    inputs: named(inputs),
    outputs: named(outputs),
    state: named(Object.fromEntries(Object.entries(state).map(([name, { tensor }]) => [name, tensor]))),
  }
}

describe("the message of a program", () => {
  it("has the same graph, in the same order, with the same constants", () => {
    const spec = specOf()
    assert.deepStrictEqual(described(decodeSpec(encodeSpec(spec))), described(spec))
  })

  it("is refused if it is no graph", () => {
    assert.throws(() => decodeSpec(new Uint8Array(3)))
    assert.throws(() => decodeSpec(encodeSpec(specOf()).slice(0, -4)))
  })
})
