import { assert, describe, it } from "@effect/vitest"
import { Effect, Record } from "effect"
import { stream } from "../../../src/base/rng/Rng.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import { readInt8 } from "../../../src/decoder/networks/int8.ts"
import { Backend } from "../../../src/tensor/backend/Backend.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { NamedTensors } from "../../../src/tensor/graph/Parameters.ts"
import { tinyConfig } from "./configs.ts"

const shape = { rank: 3, targets: Decoder.projections }

/** Computes the quantised weights as the matrix that they stand for, one number after another. */
const dequantised = (weights: NamedTensors, isMatrix: (name: string) => boolean): NamedTensors =>
  Record.map(weights, ({ shape: [rows, columns = 1], data }, name) => {
    if (!isMatrix(name)) return { shape: weights[name].shape, data }
    const floats = new Float32Array(data.length)
    for (let row = 0; row < rows; row++) {
      const own = data.slice(row * columns, (row + 1) * columns)
      const scale = Math.fround(own.map(Math.abs).toSorted()[columns - 1] / 127)
      own.forEach((w, column) => {
        // The integer nearest to w / scale.
        const below = Math.floor(w / scale)
        const q = w / scale - below < 0.5 ? below : below + 1
        floats[row * columns + column] = q * scale
      })
    }
    return { shape: [rows, columns], data: floats }
  })

/** Computes the logits of some tokens, and the gradient of an adapter. */
const computed = (config: Decoder.DecoderConfig, weights: NamedTensors) =>
  Effect.gen(function* () {
    const states = Decoder.statesOf(Decoder.parametersOf(config))
    const inputs = Decoder.packedInputs(2, 8)
    const { adapter, scaling, adapt } = Decoder.oneAdapter(config, shape)
    const hidden = Decoder.hiddenStates(config, states, inputs, adapt)
    const { logProbability_t } = Decoder.predictions(config, states, hidden, inputs)
    const [gradient] = gradients(G.mean(logProbability_t), [adapter])
    const program = yield* (yield* Backend).compile({
      name: "int8",
      inputs: { ...inputs, adapter, scaling },
      state: Record.map(states, (tensor) => ({ tensor })),
      outputs: { logits: Decoder.logitsOf(config, states, hidden), gradient },
    })
    for (const [name, { data }] of Object.entries(weights)) yield* program.write(name, data)
    const { feeds, results } = program
    const random = stream(3, "adapter")
    feeds["adapter"].forEach((_, at, all) => void (all[at] = 0.2 * random.normal()))
    feeds["scaling"].fill(2)
    feeds["tokens"].forEach((_, at, all) => void (all[at] = (7 * at + 3) % config.vocabSize))
    feeds["positions"].forEach((_, at, all) => void (all[at] = at % 8))
    feeds["contexts"].forEach((_, at, all) => void (all[at] = at % 8 === 0 ? -1 : at - 1))
    feeds["ends"].forEach((_, at, all) => void (all[at] = 8 * Math.floor(at / 8) + 8))
    yield* program.run
    return { logits: results["logits"].slice(), gradient: results["gradient"].slice() }
  }).pipe(Effect.scoped)

const assertNear = (found: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number): void => {
  const largest = Math.max(...Array.from(expected, Math.abs))
  assert.isAbove(largest, 0)
  for (let at = 0; at < expected.length; at++) assert.approximately(found[at], expected[at], tolerance * largest)
}

describe("a model with int8 weights", () => {
  for (const [backend, layer] of Object.entries({ wasm: Wasm.layer, reference: Reference.layer }))
    for (const tiedEmbeddings of [false, true])
      it.effect(
        `has the logits and adapter gradients of the floats that they stand for, ${tiedEmbeddings ? "tied" : "untied"}, on ${backend}`,
        () =>
          Effect.gen(function* () {
            const config: Decoder.DecoderConfig = { ...tinyConfig, layers: 1, tiedEmbeddings }
            const weights = Decoder.initialValues(Decoder.parametersOf(config, 0.3), stream(1, "weights"))
            const { decoder, weights: bytes } = yield* readInt8(config, (name) => Effect.succeed(weights[name]))
            const isMatrix = (name: string): boolean => /_proj|embed_tokens|lm_head/.test(name) && !/bias/.test(name)
            const floats = dequantised(weights, isMatrix)
            for (const name of Object.keys(weights).filter(isMatrix)) {
              const [, columns] = weights[name].shape
              const scales = bytes[`${name}_scale`].data
              const products = bytes[name].data.map((q, at) => q * scales[Math.floor(at / columns)])
              assert.deepStrictEqual(products, floats[name].data, name)
            }
            const [found, expected] = [yield* computed(decoder, bytes), yield* computed(config, floats)]
            assertNear(found.logits, expected.logits, 1e-5)
            assertNear(found.gradient, expected.gradient, 1e-4)
            // The floats before quantisation give other numbers, but not far from these.
            const exact = yield* computed(config, weights)
            assert.notDeepEqual(exact.logits, expected.logits)
            assertNear(found.logits, exact.logits, 0.1)
          }).pipe(Effect.provide(layer)),
      )
})
