import { assert, describe, it } from "@effect/vitest"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import { constant, normal, orthogonal, zeros } from "../../../src/tensor/graph/initialisers.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { layout } from "../../../src/tensor/graph/Parameters.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const parameters = layout({
  weight: { shape: [2, 3], init: orthogonal(1) },
  bias: { shape: [3], init: zeros },
  scale: { shape: [], init: constant(2) },
})

describe("layout", () => {
  it("lays out the parameters in the order of their declaration", () => {
    assert.deepStrictEqual(parameters.names, ["weight", "bias", "scale"])
    assert.strictEqual(parameters.size, 10)
    const theta = G.constant([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    const { weight, bias, scale } = parameters.tensorsOf(theta)
    assert.deepStrictEqual(
      [weight, bias, scale].map(({ shape }) => [...shape]),
      [[2, 3], [3], []],
    )
    assert.deepStrictEqual(
      evaluate([weight, bias, scale]).map((values) => [...values]),
      [[0, 1, 2, 3, 4, 5], [6, 7, 8], [9]],
    )
  })

  it("gives the same tensors for the same vector, so that gradients find them", () => {
    const theta = G.state("theta", [10])
    assert.strictEqual(parameters.tensorsOf(theta), parameters.tensorsOf(theta))
    assert.notStrictEqual(parameters.tensorsOf(theta), parameters.tensorsOf(G.state("theta", [10])))
  })

  it("joins one tensor for each parameter into one vector", () => {
    const flat = parameters.flatten({
      scale: G.constant(9),
      weight: G.constant([0, 1, 2, 3, 4, 5], [2, 3]),
      bias: G.constant([6, 7, 8]),
    })
    assert.deepStrictEqual([...evaluate([flat])[0]], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  it("gives the same gradient through the parts and through the whole vector", () => {
    const theta = G.constant([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    const { weight, bias, scale } = parameters.tensorsOf(theta)
    const loss = G.mul(G.sum(G.square(G.add(weight, bias))), scale)
    const [dWeight, dBias, dScale] = gradients(loss, [weight, bias, scale])
    const [whole] = gradients(loss, [theta])
    const [byParts, atOnce] = evaluate([parameters.flatten({ weight: dWeight, bias: dBias, scale: dScale }), whole])
    assert.deepStrictEqual(atOnce, byParts)
    assert.strictEqual(whole.op.kind, "concat")
  })

  it("draws each parameter from its own stream, so that a new parameter does not change the others", () => {
    const random = () => stream(1, "weights")
    const more = layout({
      first: { shape: [4], init: normal(1) },
      weight: { shape: [2, 3], init: orthogonal(1) },
      bias: { shape: [3], init: zeros },
    })
    const one = parameters.toNamed(parameters.initialise(random()))
    const other = more.toNamed(more.initialise(random()))
    assert.deepStrictEqual(one.weight, other.weight)
    assert.deepStrictEqual(one.scale.data, Float32Array.of(2))
    assert.deepStrictEqual(one.bias.data, new Float32Array(3))
  })

  it("names the parameter that is missing or has another shape", () => {
    const [weight, bias, scale] = [G.constant(0, [2, 3]), G.constant(0, [3]), G.constant(0)]
    assert.throws(() => parameters.flatten({ weight, bias }), GraphError, /parameter "scale": its tensor is missing/)
    assert.throws(
      () => parameters.flatten({ weight: bias, bias, scale }),
      /parameter "weight": expected shape \[2, 3\] \(given \[3\]\)/,
    )
    assert.throws(() => parameters.tensorsOf(G.state("theta", [9])), /expected the flat vector \[10\] \(given \[9\]\)/)
    const named = parameters.toNamed(new Float32Array(10))
    assert.throws(
      () => parameters.fromNamed({ weight: named.weight, scale: named.scale }),
      /parameter "bias" is missing/,
    )
    assert.throws(
      () => parameters.fromNamed({ ...named, bias: { shape: [4], data: new Float32Array(4) } }),
      /parameter "bias": expected shape \[3\], found \[4\]/,
    )
    assert.throws(
      () => parameters.fromNamed({ ...named, bias: { shape: [3], data: new Float32Array(4) } }),
      /parameter "bias": expected shape \[3\], found 4 numbers/,
    )
  })
})

describe("named arrays", () => {
  it("are copies, and restore the vector in any order", () => {
    const theta = Float32Array.from({ length: 10 }, (_, at) => at)
    const { weight, bias, scale } = parameters.toNamed(theta)
    theta[0] = 99
    assert.strictEqual(weight.data[0], 0)
    assert.deepStrictEqual(weight.shape, [2, 3])
    theta[0] = 0
    assert.deepStrictEqual(parameters.fromNamed({ scale, bias, weight }), theta)
  })
})
