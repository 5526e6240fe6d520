import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { memory } from "../../../src/rl/model/memory.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const Numbers = Schema.Array(Schema.Finite)
/** What PyTorch's LSTM computed in float64: `data/lstm.py`. */
const Fixture = Schema.Struct({
  inputs: Schema.Int,
  units: Schema.Int,
  sequences: Schema.Int,
  steps: Schema.Int,
  fresh: Numbers,
  coefficients: Numbers,
  leaves: Schema.Record(Schema.String, Schema.Struct({ value: Numbers, gradient: Numbers })),
  features: Numbers,
  hidden: Numbers,
  cell: Numbers,
})
const path = fileURLToPath(new URL("data/lstm.json", import.meta.url))
const torch = Schema.decodeUnknownSync(Schema.fromJsonString(Fixture))(readFileSync(path, "utf8"))

const close = (actual: ArrayLike<number>, expected: ReadonlyArray<number>, what: string): void => {
  assert.strictEqual(actual.length, expected.length, what)
  expected.forEach((value, index) => assert.closeTo(actual[index], value, 1e-6, `${what}, number ${index}`))
}

describe("the memory of a recurrent network", () => {
  it("equals PyTorch's LSTM over sequences in which an episode begins, with the gradients of all weights, rows and states", () => {
    const { inputs, units, sequences, steps, leaves } = torch
    const shapes = {
      inputWeight: [inputs, 4 * units],
      hiddenWeight: [units, 4 * units],
      bias: [4 * units],
      rows: [sequences * steps, inputs],
      state: [sequences, 2 * units],
    }
    const names = ["inputWeight", "hiddenWeight", "bias", "rows", "state"] as const
    const [inputWeight, hiddenWeight, bias, rows, state] = names.map((name) =>
      G.constant(leaves[name].value, shapes[name]),
    )
    const weights = { "m.inputWeight": inputWeight, "m.hiddenWeight": hiddenWeight, "m.bias": bias }
    const fresh = G.constant(torch.fresh, [sequences * steps])
    const { features, memory: after } = memory("m", inputs, units).apply(weights, rows, { state, fresh })
    const [hidden, cell] = G.split(after, [units, units], 1)
    const coefficients = G.constant(torch.coefficients, [sequences * steps, units])
    const loss = G.add(G.sum(G.mul(features, coefficients)), G.sum(cell))
    const slopes = gradients(loss, [inputWeight, hiddenWeight, bias, rows, state])
    const [allFeatures, lastHidden, lastCell, ...found] = evaluate([features, hidden, cell, ...slopes])
    close(allFeatures, torch.features, "features")
    close(lastHidden, torch.hidden, "hidden state")
    close(lastCell, torch.cell, "cell state")
    names.forEach((name, index) => close(found[index], leaves[name].gradient, `gradient of ${name}`))
  })

  it("has a gradient from the last of 64 steps to the first, but not across the beginning of an episode", () => {
    const [units, steps] = [8, 64]
    const lstm = memory("m", 1, units, 3)
    const random = stream(1)
    const weights = Object.fromEntries(
      Object.entries(lstm.parameters).map(([name, { shape, init }]) => [name, G.constant(init(random, shape), shape)]),
    )
    const firstSlope = (begins: number): number => {
      const rows = G.constant(new Float32Array(steps).fill(0.5), [steps, 1])
      const fresh = G.constant(new Float32Array(steps).fill(1, begins, begins + 1), [steps])
      const state = G.constant(new Float32Array(2 * units), [1, 2 * units])
      const { memory: after } = lstm.apply(weights, rows, { state, fresh })
      return evaluate(gradients(G.sum(after), [rows]))[0][0]
    }
    assert.notStrictEqual(firstSlope(0), 0)
    assert.strictEqual(firstSlope(40), 0)
  })

  it("starts with biases of 0, but of those of the forget gates", () => {
    const biasesOf = (forgetBias?: number) => {
      const { init, shape } = memory("m", 3, 2, forgetBias).parameters["m.bias"]
      return [...init(stream(1), shape)]
    }
    assert.deepStrictEqual(biasesOf(3), [0, 0, 3, 3, 0, 0, 0, 0])
    assert.deepStrictEqual(biasesOf(), [0, 0, 0, 0, 0, 0, 0, 0])
  })
})
