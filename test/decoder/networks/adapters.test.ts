import { assert, describe, it } from "@effect/vitest"
import { Record } from "effect"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { EngineError } from "../../../src/decoder/inference/EngineError.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import * as Rng from "../../../src/base/rng/Rng.ts"
import { compileWith } from "../../../property-tests/support/agreement.ts"
import { feedSequences } from "../../../property-tests/support/decoders.ts"
import { backends, config, expected, relativeError, tensorsIn, write } from "./fixture.ts"

const { forward, sft, lora } = expected
const shape = { rank: 4, targets: Decoder.projections }
const parameters = Decoder.statesOf(Decoder.parametersOf(config))
const state = Record.map(parameters, (tensor) => ({ tensor }))
const declarations = Decoder.adapterParametersOf(config, shape)

/** The fixture's arrays by our names; peft's begin with `base_model.model.`. */
const adapterIn = (file: string) =>
  Object.fromEntries(
    Object.entries(tensorsIn(file)).map(([name, data]) => {
      const own = name.replace("base_model.model.", "").replace(".default", "")
      return [own, { shape: declarations[own].shape, data }]
    }),
  )

describe("LoRA", () => {
  const inputs = Decoder.packedInputs(3, 17)
  const { adapt, table, blockAdapters, scalings } = Decoder.routedAdapters(config, { shape, adapters: 3, blocks: 3 })
  const hidden = Decoder.hiddenStates(config, parameters, inputs, adapt)
  const mask = G.input("mask", [3, 17])
  const { logProbability_t } = Decoder.predictions(config, parameters, hidden, inputs)
  const loss = G.neg(G.div(G.sum(G.mul(mask, logProbability_t)), G.sum(mask)))
  const [slope] = gradients(loss, [table])
  const spec = {
    name: "lora",
    inputs: { ...inputs, mask, blockAdapters, scalings },
    state: { ...state, adapters: { tensor: table } },
    outputs: { loss, slope, logits: Decoder.logitsOf(config, parameters, hidden) },
  }

  for (const [backend, layer] of Object.entries(backends)) {
    it(`has peft's logits, loss and gradients of all matrices on ${backend}`, () => {
      const program = compileWith(layer, spec)
      const adapters = new Decoder.MultiLoRA(config, shape, 3)
      adapters.load(1, { rank: 4, alpha: 8 }, adapterIn("adapter/adapter_model.safetensors"))
      adapters.reset(0, { rank: 4, alpha: 8 }, Rng.stream(1, "other"))
      write(program, { ...tensorsIn("model.safetensors"), adapters: adapters.table })
      program.feeds.scalings.set(adapters.scalings)
      program.feeds.blockAdapters.set(Decoder.blockAdaptersOf({ loraNumTokens: [0, 51, 0], tokens: 51, block: 17 }))
      feedSequences(
        program,
        17,
        forward.input_ids.map((row) => [row]),
      )
      program.feeds.mask.set(sft.mask.flatMap((row) => [0, ...row]))
      program.runSync?.()
      const { results } = program
      const row = 17 * config.vocabSize
      lora.logits_last.forEach((last, index) => {
        const end = (index + 1) * row
        assert.isBelow(relativeError(results.logits.subarray(end - config.vocabSize, end), last), 1e-4)
      })
      assert.closeTo(results.loss[0], lora.loss, 1e-4)

      const { offsets, size } = Decoder.adapterLayoutOf(declarations)
      const slopes = adapterIn("lora_grads.safetensors")
      assert.sameMembers(Object.keys(slopes), Object.keys(declarations))
      for (const [name, { data }] of Object.entries(slopes)) {
        const at = size + (offsets.get(name) ?? Number.NaN)
        assert.isBelow(relativeError(results.slope.subarray(at, at + data.length), data), 1e-4, name)
      }
      const others = [...results.slope.subarray(0, size), ...results.slope.subarray(2 * size)]
      assert.isTrue(others.every((number) => number === 0))
    })
  }
})

describe("blockAdaptersOf", () => {
  it("lists the adapter of each block", () => {
    const found = Decoder.blockAdaptersOf({ loraNumTokens: [0, 64, 0, 32], tokens: 96, block: 32 })
    assert.deepStrictEqual([...found], [1, 1, 3])
  })

  it("says which number is wrong", () => {
    const refused = (loraNumTokens: ReadonlyArray<number>, message: string, block = 32) =>
      assert.throws(() => Decoder.blockAdaptersOf({ loraNumTokens, tokens: 96, block }), EngineError, message)
    refused([32, 33, 31], "loraNumTokens: adapter 1: expected a multiple of the block (32), found 33")
    refused([128, -32], "loraNumTokens: adapter 1: expected a multiple of the block (32), found -32")
    refused([32, 32], "loraNumTokens: expected numbers that add up to the 96 tokens of the batch, found 64")
    refused([96], "loraNumTokens: expected a block of 1 token or more, found 0", 0)
  })
})
