import { assert, describe, it } from "@effect/vitest"
import { Effect, Record } from "effect"
import * as Safetensors from "../../../src/base/formats/safetensors.ts"
import { inRecord } from "../../../src/base/formats/Weights.ts"
import * as LmDirectory from "../../../src/decoder/huggingFace/LmDirectory.ts"
import { fileTensors, weightLayoutOf } from "../../../src/decoder/huggingFace/weightLayout.ts"
import { Engine } from "../../../src/decoder/inference/Engine.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { NamedTensors } from "../../../src/tensor/graph/Parameters.ts"
import { compileWith } from "../../../property-tests/support/agreement.ts"
import { feedSequences } from "../../../property-tests/support/decoders.ts"
import { backends, relativeError, write } from "../networks/fixture.ts"
import { type FamilyCase, familyCases, filesOf, tensorsOf } from "./families.ts"

/** The width of a window with both sequences of a case and some padding. */
const width = 48

const openCase = Effect.fnUntraced(function* (family: FamilyCase) {
  const files = filesOf(family)
  const { decoder } = yield* LmDirectory.decodeModelConfig(files["config.json"], "config.json")
  const weights = yield* (yield* LmDirectory.openWeights(inRecord(files), ".", decoder)).readAll
  return { decoder, weights }
})

/** Compiles a program of packed logits, the loss of a case and its gradients. */
const programOf = (decoder: Decoder.DecoderConfig, layer: (typeof backends)["wasm" | "cpu" | "reference"]) => {
  const parameters = Decoder.statesOf(Decoder.parametersOf(decoder))
  const inputs = Decoder.packedInputs(1, width)
  const mask = G.input("mask", [1, width])
  const hidden = Decoder.hiddenStates(decoder, parameters, inputs)
  const { logProbability_t } = Decoder.predictions(decoder, parameters, hidden, inputs)
  const loss = G.neg(G.div(G.sum(G.mul(mask, logProbability_t)), G.sum(mask)))
  const slopes = gradients(loss, Object.values(parameters))
  const bySlope = Object.fromEntries(Object.keys(parameters).map((name, at) => [`slope ${name}`, slopes[at]]))
  const logits = Decoder.logitsOf(decoder, parameters, hidden)
  return compileWith(layer, {
    name: "family",
    inputs: { ...inputs, mask },
    state: Record.map(parameters, (tensor) => ({ tensor })),
    outputs: { logits, loss, ...bySlope },
  })
}

/** Returns seven numbers of a tensor from the first to the last, as `make.py` selects them. */
const someOf = (data: Float32Array): ReadonlyArray<number> =>
  Array.from({ length: 7 }, (_, at) => data[Math.trunc((at * (data.length - 1)) / 6)])

const engineWith = (decoder: Decoder.DecoderConfig, weights: NamedTensors) =>
  Engine.layer({
    name: "base",
    config: decoder,
    weights,
    tokenizer: { decoder: () => ({ push: (id: number) => `[${id}]`, end: () => "" }) },
    generating: [2],
    reading: [1],
    pageSize: 4,
    firstSegment: 8,
    maxLength: 32,
  })

/** Tells whether gradients of a tensor are zero except for rounding: the softmax does not depend on biases of keys. */
const isRounding = (norm: number): boolean => norm < 1e-6

/** Compares a program with what transformers computes. */
const compared = (family: FamilyCase, backend: keyof typeof backends) =>
  Effect.gen(function* () {
    const { decoder, weights } = yield* openCase(family)
    const program = programOf(decoder, backends[backend])
    write(
      program,
      Record.map(weights, ({ data }) => data),
    )
    feedSequences(program, width, [family.ids])
    const [{ length }] = family.ids
    program.feeds.mask.fill(1, 4, length).fill(1, length + 9, 2 * length)
    program.runSync?.()
    const { results } = program
    const { vocabSize } = decoder
    family.logits.forEach((wanted, index) => {
      const [row, at] = [Math.floor(index / 2), family.positions[index % 2]]
      const from = (row * length + at) * vocabSize
      assert.isBelow(relativeError(results.logits.subarray(from, from + vocabSize), wanted), 1e-5)
    })
    assert.closeTo(results.loss[0], family.loss, 1e-5)
    const slopes = Record.map(weights, ({ shape }, parameter) => ({
      shape,
      data: Float32Array.from(results[`slope ${parameter}`]),
    }))
    const layout = weightLayoutOf(decoder)
    const byTensor = layout === null ? slopes : fileTensors(layout, slopes)
    assert.sameMembers(Object.keys(byTensor), Object.keys(family.gradients))
    for (const [tensor, { norm, some }] of Object.entries(family.gradients)) {
      const { data } = byTensor[tensor]
      if (isRounding(norm)) assert.isBelow(Math.hypot(...data), 1e-6)
      else assert.closeTo(Math.hypot(...data) / norm, 1, 1e-4, tensor)
      for (const [at, value] of someOf(data).entries())
        assert.closeTo(value, some[at], 1e-4 * norm + 1e-7, `${tensor} ${at}`)
    }
  })

/** Other backends compute any graph as wasm does: tests of the backends compare them quickly. */
const quickOn = (backend: keyof typeof backends) => ({ tags: backend === "wasm" ? [] : "slow" })

for (const [name, family] of familyCases) {
  describe(`the model ${name}`, () => {
    for (const backend of ["wasm", "cpu", "reference"] as const) {
      it.effect(
        `has the logits and the gradients of transformers on ${backend}`,
        () => compared(family, backend),
        quickOn(backend),
      )
    }

    for (const backend of ["wasm", "cpu"] as const) {
      it.effect(
        `generates the greedy tokens of transformers with the engine on ${backend}`,
        () =>
          Effect.gen(function* () {
            const { decoder, weights } = yield* openCase(family)
            const answers = yield* Effect.gen(function* () {
              const engine = yield* Engine
              const sampling = { temperature: 0, maxTokens: 24, ignoreEos: true }
              return yield* Effect.forEach(
                family.ids,
                (ids) => engine.generate({ model: "base", promptIds: ids.slice(0, 5), sampling }),
                { concurrency: "unbounded" },
              )
            }).pipe(Effect.provide(engineWith(decoder, weights)), Effect.provide(backends[backend]))
            assert.deepStrictEqual(
              answers.map(({ tokens }) => tokens.map(({ id }) => id)),
              family.generated,
            )
          }),
        quickOn(backend),
      )
    }

    it.effect("is saved with the tensors that it was read from, and its config is read again", () =>
      Effect.gen(function* () {
        const { decoder, weights } = yield* openCase(family)
        const model = { decoder, weights, otherFiles: {}, eosIds: [1], config: { bosId: 0, padId: 2, json: {} } }
        const files: Record<string, Uint8Array> = {}
        for (const [file, contents] of Object.entries(yield* LmDirectory.filesOf(model)))
          files[file] = contents instanceof Uint8Array ? contents : Buffer.concat([...contents])
        const again = yield* LmDirectory.decodeModelConfig(files["config.json"], "config.json")
        assert.deepEqual(again.decoder, decoder)
        const wanted = tensorsOf(family)
        const saved = Safetensors.decode(files["model.safetensors"])
        assert.sameMembers(Object.keys(saved), Object.keys(wanted))
        for (const [tensor, { shape, data }] of Object.entries(wanted)) {
          assert.deepEqual(saved[tensor].shape, shape)
          assert.isTrue(
            Buffer.from(Float32Array.from(saved[tensor].data).buffer).equals(Buffer.from(data.buffer)),
            tensor,
          )
        }
      }),
    )
  })
}
