import { assert, describe, it } from "@effect/vitest"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import { type GraphActivation, conv, linear, lstmCell, mlp } from "../../../src/tensor/graph/layers.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { type Declaration, layout } from "../../../src/tensor/graph/Parameters.ts"
import type { Tensor } from "../../../src/tensor/graph/Tensor.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

/** Constants for a layer's parameters, drawn as it says. */
const weightsFor = (parameters: Readonly<Record<string, Declaration>>): Readonly<Record<string, Tensor>> => {
  const flat = layout(parameters)
  return flat.tensorsOf(G.constant(flat.initialise(stream(3))))
}
const valueOf = (tensor: Tensor): ReadonlyArray<number> => [...evaluate([tensor])[0]]

describe("linear", () => {
  it("is x W + b", () => {
    const layer = linear("l", 2, 3)
    assert.deepStrictEqual(Object.keys(layer.parameters), ["l.weight", "l.bias"])
    const weights = {
      "l.weight": G.constant([1, 2, 3, 4, 5, 6], [2, 3]),
      "l.bias": G.constant([10, 20, 30]),
    }
    assert.deepStrictEqual(valueOf(layer.apply(weights, G.constant([1, -1], [1, 2]))), [7, 17, 27])
  })
})

describe("mlp", () => {
  const net = mlp("net", { sizes: [2, 3, 1], activation: "tanh", outputGain: 0.01 })

  it("names its layers' parameters in order", () => {
    assert.deepStrictEqual(
      Object.entries(net.parameters).map(([name, { shape }]) => [name, [...shape]]),
      [
        ["net.0.weight", [2, 3]],
        ["net.0.bias", [3]],
        ["net.1.weight", [3, 1]],
        ["net.1.bias", [1]],
      ],
    )
  })

  it("starts with orthogonal weights of gain √2, the output gain in the last layer, and zero biases", () => {
    const weights = weightsFor(net.parameters)
    const norm = (tensor: Tensor) => Math.hypot(...valueOf(tensor))
    assert.closeTo(norm(weights["net.0.weight"]), Math.sqrt(2 * 2), 1e-6)
    assert.closeTo(norm(weights["net.1.weight"]), 0.01, 1e-8)
    assert.deepStrictEqual(valueOf(weights["net.0.bias"]), [0, 0, 0])
  })

  it("applies the activation between layers, not after the last", () => {
    const weights = {
      "net.0.weight": G.constant([1, 0, 1, 0, 1, 1], [2, 3]),
      "net.0.bias": G.constant([0, 0, -1]),
      "net.1.weight": G.constant([1, 10, 100], [3, 1]),
      "net.1.bias": G.constant([5]),
    }
    const [actual] = valueOf(net.apply(weights, G.constant([0.5, -0.5], [1, 2])))
    assert.closeTo(actual, Math.tanh(0.5) - 10 * Math.tanh(0.5) - 100 * Math.tanh(1) + 5, 1e-12)
  })

  it("has each activation under its name", () => {
    const at = (activation: GraphActivation): number => {
      const layer = mlp("a", { sizes: [1, 1, 1], activation })
      const one = G.constant([1], [1, 1])
      const zero = G.constant([0])
      const weights = { "a.0.weight": one, "a.0.bias": zero, "a.1.weight": one, "a.1.bias": zero }
      return valueOf(layer.apply(weights, G.constant([-1], [1, 1])))[0]
    }
    const sigmoid = 1 / (1 + Math.E)
    assert.closeTo(at("tanh"), Math.tanh(-1), 1e-12)
    assert.closeTo(at("relu"), 0, 1e-12)
    assert.closeTo(at("sigmoid"), sigmoid, 1e-12)
    assert.closeTo(at("silu"), -sigmoid, 1e-12)
    assert.closeTo(at("softplus"), Math.log1p(Math.exp(-1)), 1e-12)
    assert.closeTo(at("gelu"), -0.158808, 1e-6)
  })

  it("needs at least inputs and outputs", () => {
    assert.throws(
      () => mlp("net", { sizes: [4], activation: "relu" }),
      GraphError,
      /mlp: "net" needs inputs and outputs/,
    )
  })
})

describe("lstmCell", () => {
  it("equals the textbook's cell, gate by gate", () => {
    const cell = lstmCell("lstm", 1, 1)
    // Gates: input, forget, candidate, output.
    const weights = {
      "lstm.inputWeight": G.constant([0.5, -0.25, 1, 2], [1, 4]),
      "lstm.hiddenWeight": G.constant([1, 0.5, -1, 0.25], [1, 4]),
      "lstm.bias": G.constant([0.125, 1, 0, -0.5]),
    }
    const [x, h, c] = [2, 0.5, -1]
    const one = (value: number) => G.constant([value], [1, 1])
    const next = cell.apply(weights, one(x), { hidden: one(h), cell: one(c) })
    const sigmoid = (value: number) => 1 / (1 + Math.exp(-value))
    const expectedCell = sigmoid(-0.25 * x + 0.5 * h + 1) * c + sigmoid(0.5 * x + h + 0.125) * Math.tanh(x - h)
    const expectedHidden = sigmoid(2 * x + 0.25 * h - 0.5) * Math.tanh(expectedCell)
    assert.closeTo(valueOf(next.cell)[0], expectedCell, 1e-12)
    assert.closeTo(valueOf(next.hidden)[0], expectedHidden, 1e-12)
  })

  it("keeps batch and size", () => {
    const cell = lstmCell("lstm", 3, 5)
    const state = { hidden: G.input("h", [4, 5]), cell: G.input("c", [4, 5]) }
    const next = cell.apply(weightsFor(cell.parameters), G.input("x", [4, 3]), state)
    assert.deepStrictEqual(
      [next.hidden, next.cell].map(({ shape }) => [...shape]),
      [
        [4, 5],
        [4, 5],
      ],
    )
  })
})

describe("conv", () => {
  it("adds a bias to each channel", () => {
    const layer = conv("c", 1, 2, { kernel: 2, strides: 2, padding: 0 })
    const weights = { "c.weight": G.constant([1, 1, 1, 1, 0, 0, 0, 1], [2, 1, 2, 2]), "c.bias": G.constant([10, 20]) }
    const image = G.constant([1, 2, 3, 4], [1, 1, 2, 2])
    assert.deepStrictEqual(valueOf(layer.apply(weights, image)), [20, 24])
  })

  it("has a kernel for each output and input", () => {
    const layer = conv("c", 3, 8, { kernel: 5, padding: "same", strides: 2 })
    assert.deepStrictEqual(
      Object.values(layer.parameters).map(({ shape }) => [...shape]),
      [[8, 3, 5, 5], [8]],
    )
    const y = layer.apply(weightsFor(layer.parameters), G.input("x", [2, 3, 9, 10]))
    assert.deepStrictEqual([...y.shape], [2, 8, 5, 5])
  })
})
