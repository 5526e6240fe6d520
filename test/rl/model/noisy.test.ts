import { assert, describe, it } from "@effect/vitest"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import { zeros } from "../../../src/tensor/graph/initialisers.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { layout } from "../../../src/tensor/graph/Parameters.ts"
import { noisyLayers } from "../../../src/rl/model/noisy.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const declared = (...shape: ReadonlyArray<number>) => ({ shape, init: zeros })

/** A convolution, and two dense layers. */
const layers = noisyLayers({
  "q.conv0.weight": declared(2, 1, 3, 3),
  "q.conv0.bias": declared(2),
  "q.0.weight": declared(2, 3),
  "q.0.bias": declared(3),
  "q.value.weight": declared(3, 1),
  "q.value.bias": declared(1),
})
const deviations = ["q.0.weight", "q.0.bias", "q.value.weight", "q.value.bias"].map((name) => `${name}Deviation`)

const uniform = (seed: number): Float64Array => {
  const numbers = new Float64Array(layers.noiseSize)
  stream(seed).fillUniform(numbers)
  return numbers
}

describe("noisy layers", () => {
  it("have a deviation for each weight of a dense layer, which starts at 0.5 / √inputs", () => {
    const names = Object.keys(layers.parameters)
    assert.deepStrictEqual(names.slice(6), deviations)
    assert.strictEqual(layers.noiseSize, 2 * (2 + 3 + 3 + 1))
    const parameters = layout(layers.parameters)
    const initial = parameters.toNamed(parameters.initialise(stream(1)))
    assert.deepStrictEqual([...initial["q.0.biasDeviation"].data], new Array(3).fill(Math.fround(0.5 / Math.sqrt(2))))
    assert.deepStrictEqual(
      [...initial["q.value.weightDeviation"].data],
      new Array(3).fill(Math.fround(0.5 / Math.sqrt(3))),
    )
  })

  it("draw weights as the paper's formula says: μ + σ f(ε) f(ε′), the bias with f(ε′) alone", () => {
    const random = stream(2)
    const values = Object.fromEntries(
      Object.entries(layers.parameters).map(([name, { shape }]) => [
        name,
        Array.from({ length: shape.reduce((a, b) => a * b) }, () => Math.fround(random.between(-1, 1))),
      ]),
    )
    const weights = Object.fromEntries(
      Object.entries(values).map(([name, numbers]) => [name, G.constant(numbers, layers.parameters[name].shape)]),
    )
    const numbers = uniform(3)
    const drawn = layers.draw(weights, G.constant(Array.from(numbers), [1, layers.noiseSize]))
    // Standard normal numbers by the method of Box and Muller, then f.
    const count = layers.noiseSize / 2
    const factors = Array.from({ length: count }, (_, index) => {
      const [u, v] = [Math.fround(numbers[index]), Math.fround(numbers[count + index])]
      const normal = Math.sqrt(-2 * Math.log(1 - u)) * Math.cos(2 * Math.PI * v)
      return Math.sign(normal) * Math.sqrt(Math.abs(normal))
    })
    const expected = (name: string, inputs: number, outputs: number, from: number) => ({
      weight: Array.from({ length: inputs * outputs }, (_, at) => {
        const [row, column] = [Math.floor(at / outputs), at % outputs]
        const noise = factors[from + row] * factors[from + inputs + column]
        return values[`${name}.weight`][at] + values[`${name}.weightDeviation`][at] * noise
      }),
      bias: Array.from({ length: outputs }, (_, at) => {
        return values[`${name}.bias`][at] + values[`${name}.biasDeviation`][at] * factors[from + inputs + at]
      }),
    })
    for (const [name, wanted] of Object.entries({
      "q.0": expected("q.0", 2, 3, 0),
      "q.value": expected("q.value", 3, 1, 5),
    })) {
      const [weight, bias] = evaluate([drawn[`${name}.weight`], drawn[`${name}.bias`]])
      for (const [at, value] of wanted.weight.entries()) assert.closeTo(weight[at], value, 1e-6)
      for (const [at, value] of wanted.bias.entries()) assert.closeTo(bias[at], value, 1e-6)
    }
    // A convolution keeps its weights, and a deviation of 0 the mean.
    assert.strictEqual(drawn["q.conv0.weight"], weights["q.conv0.weight"])
    const silent = { ...weights, ...Object.fromEntries(deviations.map((name) => [name, G.mul(weights[name], 0)])) }
    const [still] = evaluate([
      layers.draw(silent, G.constant(Array.from(numbers), [1, layers.noiseSize]))["q.0.weight"],
    ])
    assert.deepStrictEqual(Array.from(still), values["q.0.weight"])
  })

  it("reject noise of another size", () => {
    assert.throws(
      () => layers.draw({}, G.constant([0, 0], [1, 2])),
      GraphError,
      /^noisyLayers: expected noise \[1, 18\]/,
    )
  })
})
