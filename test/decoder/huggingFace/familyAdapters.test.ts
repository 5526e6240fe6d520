import { assert, describe, it } from "@effect/vitest"
import { Effect, Record } from "effect"
import { inRecord } from "../../../src/base/formats/Weights.ts"
import * as Adapter from "../../../src/decoder/huggingFace/Adapter.ts"
import * as LmDirectory from "../../../src/decoder/huggingFace/LmDirectory.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import { compileWith } from "../../../property-tests/support/agreement.ts"
import { feedSequences } from "../../../property-tests/support/decoders.ts"
import { backends, relativeError, write } from "../networks/fixture.ts"
import { adapterFilesOf, familyCases, filesOf } from "./families.ts"

describe("an adapter of peft", () => {
  for (const [name, family] of familyCases) {
    it.effect(`for ${name} has the logits of peft, also if it is merged or saved and loaded`, () =>
      Effect.gen(function* () {
        const files = filesOf(family)
        const { decoder } = yield* LmDirectory.decodeModelConfig(files["config.json"], "config.json")
        const weights = yield* (yield* LmDirectory.openWeights(inRecord(files), ".", decoder)).readAll
        const adapter = yield* Adapter.load(inRecord(adapterFilesOf(family)), ".", decoder)
        const [{ length }] = family.ids
        const inputs = Decoder.packedInputs(2, length)
        const parameters = Decoder.statesOf(Decoder.parametersOf(decoder))
        const { adapt, adapter: numbers, scaling } = Decoder.oneAdapter(decoder, adapter)
        const program = compileWith(backends.wasm, {
          name: "adapted",
          inputs: { ...inputs, adapter: numbers, scaling },
          state: Record.map(parameters, (tensor) => ({ tensor })),
          outputs: { logits: Decoder.packedLogits(decoder, parameters, inputs, adapt) },
        })
        const { vocabSize } = decoder
        const check = (base: typeof weights, scale: number) => {
          write(
            program,
            Record.map(base, ({ data }) => data),
          )
          const table = new Decoder.MultiLoRA(decoder, adapter, 1)
          table.load(0, adapter, adapter.tensors)
          program.feeds.adapter.set(table.row(0))
          program.feeds.scaling[0] = scale * table.scalings[0]
          feedSequences(
            program,
            length,
            family.ids.map((row) => [row]),
          )
          program.runSync?.()
          family.lora.logits.forEach((wanted, row) => {
            const end = (row + 1) * length * vocabSize
            assert.isBelow(relativeError(program.results.logits.subarray(end - vocabSize, end), wanted), 2e-5)
          })
        }
        check(weights, 1)
        check(Adapter.merge(decoder, weights, adapter).weights, 0)
        const saved: Record<string, Uint8Array> = {}
        for (const [file, contents] of Object.entries(yield* Adapter.filesOf(adapter, decoder)))
          saved[file] = contents instanceof Uint8Array ? contents : Buffer.concat([...contents])
        const again = yield* Adapter.load(inRecord(saved), ".", decoder)
        assert.deepEqual(again.tensors, adapter.tensors)
      }),
    )
  }
})
