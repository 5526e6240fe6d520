import { assert, describe, it } from "@effect/vitest"
import { Record } from "effect"
import type { Program } from "../../../src/tensor/backend/Backend.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../src/tensor/graph/Program.ts"
import {
  type DecoderConfig,
  hiddenStates,
  initialValues,
  packedInputs,
  packedLogits,
  parametersOf,
  predictions,
  statesOf,
} from "../../../src/decoder/networks/Decoder.ts"
import { compileWith } from "../../../property-tests/support/agreement.ts"
import { feedSequences } from "../../../property-tests/support/decoders.ts"
import * as Rng from "../../../src/base/rng/Rng.ts"
import { plainLogits } from "./plain.ts"
import { backends, config, expected, relativeError, tensorsIn, write } from "./fixture.ts"

const { forward, packed, sft } = expected
const weights = tensorsIn("model.safetensors")
const parameters = statesOf(parametersOf(config))
const states = Record.map(parameters, (tensor) => ({ tensor }))

const feed = (program: Program, rows: ReadonlyArray<ReadonlyArray<number>>) =>
  feedSequences(
    program,
    17,
    rows.map((row) => [row]),
  )

describe("the fixture of Hugging Face", () => {
  const inputs = packedInputs(3, 17)
  const hidden = hiddenStates(config, parameters, inputs)
  const mask = G.input("mask", [3, 17])
  const { logProbability_t } = predictions(config, parameters, hidden, inputs)
  const loss = G.neg(G.div(G.sum(G.mul(mask, logProbability_t)), G.sum(mask)))
  const slopes = gradients(loss, Object.values(parameters))
  const names = Object.keys(parameters)
  const spec: ProgramSpec = {
    name: "fixture",
    inputs: { ...inputs, mask },
    state: states,
    outputs: {
      logits: packedLogits(config, parameters, inputs),
      logProbability_t,
      loss,
      ...Object.fromEntries(names.map((name, index) => [`slope ${name}`, slopes[index]])),
    },
  }

  for (const [backend, layer] of Object.entries(backends)) {
    it(`has its logits, log-probabilities, SFT loss and all gradients on ${backend}`, () => {
      const program = compileWith(layer, spec)
      write(program, weights)
      feed(program, forward.input_ids)
      program.feeds.mask.set(sft.mask.flatMap((row) => [0, ...row]))
      program.runSync?.()
      const { results } = program
      const row = 17 * config.vocabSize
      assert.isBelow(relativeError(results.logits.subarray(0, row), forward.logits_row_0.flat()), 1e-4)
      forward.logits_last.forEach((last, index) => {
        const end = (index + 1) * row
        assert.isBelow(relativeError(results.logits.subarray(end - config.vocabSize, end), last), 1e-4)
      })
      const wanted = forward.logprobs_of_next.flatMap((next) => [0, ...next])
      assert.isBelow(relativeError(results.logProbability_t, wanted), 1e-4)
      assert.closeTo(results.loss[0], sft.loss, 1e-4)
      const slopesWanted = tensorsIn("sft_grads.safetensors")
      assert.sameMembers(Object.keys(slopesWanted), names)
      for (const name of names) {
        assert.isBelow(relativeError(results[`slope ${name}`], slopesWanted[name]), 1e-4, name)
      }
    })
  }

  for (const [backend, layer] of Object.entries({ wasm: backends.wasm, cpu: backends.cpu })) {
    it(`has its logits of two packed sequences on ${backend}, and padding changes nothing`, () => {
      const inputs = packedInputs(1, 20)
      const logits = packedLogits(config, parameters, inputs)
      const program = compileWith(layer, { name: "packed", inputs: { ...inputs }, state: states, outputs: { logits } })
      write(program, weights)
      for (const garbage of [0, 99]) {
        const [row] = packed.input_ids
        const [first] = packed.lengths
        feedSequences(program, 20, [[row.slice(0, first), row.slice(first)]])
        program.feeds.tokens.fill(garbage, 17)
        program.runSync?.()
        const found = program.results.logits.subarray(0, 17 * config.vocabSize)
        assert.isBelow(relativeError(found, packed.logits.flat()), 1e-4)
        assert.isTrue(program.results.logits.every(Number.isFinite))
      }
    })
  }
})

describe("weights in bfloat16", () => {
  it("have the fixture's logits to 2e-2, and other ones than the weights in float32", () => {
    const inputs = packedInputs(3, 17)
    const logits = packedLogits(config, parameters, inputs)
    const program = compileWith(backends.wasm, {
      name: "bf16",
      inputs: { ...inputs },
      state: states,
      outputs: { logits },
    })
    write(program, tensorsIn("../llama-bf16/model.safetensors"))
    feed(program, forward.input_ids)
    program.runSync?.()
    const row = 17 * config.vocabSize
    const differences = [
      relativeError(program.results.logits.subarray(0, row), forward.logits_row_0.flat()),
      ...forward.logits_last.map((last, index) => {
        const end = (index + 1) * row
        return relativeError(program.results.logits.subarray(end - config.vocabSize, end), last)
      }),
    ]
    for (const difference of differences) {
      assert.isBelow(difference, 2e-2)
      assert.isAbove(difference, 1e-4)
    }
  })
})

describe("a window that is wider than the queries that are computed together", () => {
  const tiny: DecoderConfig = { ...config, vocabSize: 7, hiddenSize: 8, intermediateSize: 4, layers: 1, headDim: 2 }
  const declarations = parametersOf(tiny)
  const own = statesOf(declarations)
  // The initial weights are so small that attention would be nearly uniform.
  const arrays = Record.map(initialValues(declarations, Rng.stream(1, "weights")), ({ shape, data }) => ({
    shape,
    data: shape.length === 1 ? data : data.map((value) => 40 * value),
  }))
  const random = Rng.stream(1, "tokens")
  const tokens = Array.from({ length: 600 }, () => random.integer(7))
  const inputs = packedInputs(1, 600)
  const logits = packedLogits(tiny, own, inputs)
  const spec: ProgramSpec = {
    name: "wide",
    inputs: { ...inputs },
    state: Record.map(own, (tensor) => ({ tensor })),
    outputs: { logits },
  }
  for (const [backend, layer] of Object.entries({ wasm: backends.wasm, cpu: backends.cpu })) {
    it(`has the logits of a plain implementation on ${backend}`, () => {
      const program = compileWith(layer, spec)
      write(
        program,
        Record.map(arrays, ({ data }) => data),
      )
      feedSequences(program, 600, [[tokens.slice(0, 270), tokens.slice(270)]])
      program.runSync?.()
      const wanted = [tokens.slice(0, 270), tokens.slice(270)].flatMap((row) => plainLogits(tiny, arrays, row).flat())
      assert.isBelow(relativeError(program.results.logits, wanted), 1e-4)
    })
  }
})
