import { assert, describe, it } from "@effect/vitest"
import { Effect, Record } from "effect"
import * as safetensors from "../../../src/base/formats/safetensors.ts"
import { inRecord } from "../../../src/base/formats/Weights.ts"
import * as Adapter from "../../../src/decoder/huggingFace/Adapter.ts"
import * as LmDirectory from "../../../src/decoder/huggingFace/LmDirectory.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import { compileWith } from "../../../property-tests/support/agreement.ts"
import { feedSequences } from "../../../property-tests/support/decoders.ts"
import { json } from "../../base/tokens/fixtures.ts"
import { backends, relativeError, write } from "../networks/fixture.ts"
import { adapterCase, filesOf, tensorsOf } from "./families.ts"

type Case = ReturnType<typeof adapterCase>

const adapterFiles = ({ config, tensors }: Case) => ({
  "adapter_config.json": json(config),
  "adapter_model.safetensors": safetensors.encode(tensorsOf({ tensors })),
})

const open = Effect.fnUntraced(function* (one: Case) {
  const files = filesOf(one.model)
  const { decoder } = yield* LmDirectory.decodeModelConfig(files["config.json"], "config.json")
  const weights = yield* (yield* LmDirectory.openWeights(inRecord(files), ".", decoder)).readAll
  return { decoder, weights }
})

/** Returns the logits of the last position of each row, with an adapter beside the weights if there is one. */
const lastLogits = ({ decoder, weights }: Adapter.MergedModel, { model }: Case, adapter?: Adapter.LoraAdapter) => {
  const [{ length }] = model.ids
  const inputs = Decoder.packedInputs(2, length)
  const parameters = Decoder.statesOf(Decoder.parametersOf(decoder))
  const one = adapter === undefined ? undefined : Decoder.oneAdapter(decoder, adapter)
  const program = compileWith(backends.wasm, {
    name: "logits",
    inputs: { ...inputs, ...(one === undefined ? {} : { adapter: one.adapter, scaling: one.scaling }) },
    state: Record.map(parameters, (tensor) => ({ tensor })),
    outputs: { logits: Decoder.packedLogits(decoder, parameters, inputs, one?.adapt) },
  })
  write(
    program,
    Record.map(weights, ({ data }) => data),
  )
  if (adapter !== undefined) {
    const table = new Decoder.MultiLoRA(decoder, adapter, 1)
    table.load(0, adapter, adapter.tensors)
    program.feeds.adapter.set(table.row(0))
    program.feeds.scaling[0] = table.scalings[0]
  }
  feedSequences(
    program,
    length,
    model.ids.map((row) => [row]),
  )
  program.runSync?.()
  return model.ids.map((_, row) => {
    const end = (row + 1) * length * decoder.vocabSize
    return program.results.logits.slice(end - decoder.vocabSize, end)
  })
}

const checkLogits = (found: ReturnType<typeof lastLogits>, { logits }: Case): void => {
  for (const [row, wanted] of logits.entries()) assert.isBelow(relativeError(found[row], wanted), 1e-5)
}

describe("an adapter of peft that is merged", () => {
  for (const name of ["dora", "norms-and-head", "dora-joined", "dora-transposed"]) {
    it.effect(`(${name}) has the logits of peft, also saved and loaded, and is refused elsewhere`, () =>
      Effect.gen(function* () {
        const one = adapterCase(name)
        const { decoder, weights } = yield* open(one)
        const files = inRecord(adapterFiles(one))
        const adapter = yield* Adapter.load(files, ".", decoder, { merging: true })
        checkLogits(lastLogits(Adapter.merge(decoder, weights, adapter), one), one)

        const saved: Record<string, Uint8Array> = {}
        for (const [file, contents] of Object.entries(yield* Adapter.filesOf(adapter, decoder)))
          saved[file] = contents instanceof Uint8Array ? contents : Buffer.concat([...contents])
        const again = yield* Adapter.load(inRecord(saved), ".", decoder, { merging: true })
        assert.deepEqual(Adapter.merge(decoder, weights, again), Adapter.merge(decoder, weights, adapter))

        const { message } = yield* Effect.flip(Adapter.load(files, ".", decoder))
        assert.match(
          message,
          /^adapter_config\.json: (use_dora|modules_to_save): .* effect serve MODEL --merge ADAPTER/,
        )
      }),
    )
  }

  it.effect("has the logits of peft with ranks and alphas of its projections, merged or not", () =>
    Effect.gen(function* () {
      const one = adapterCase("patterns")
      const { decoder, weights } = yield* open(one)
      const adapter = yield* Adapter.load(inRecord(adapterFiles(one)), ".", decoder)
      assert.strictEqual(adapter.rank, 4)
      checkLogits(lastLogits(Adapter.merge(decoder, weights, adapter), one), one)
      checkLogits(lastLogits({ decoder, weights }, one, adapter), one)
    }),
  )

  it.effect("needs the modules that it replaces in the model, and their tensors", () =>
    Effect.gen(function* () {
      const one = adapterCase("norms-and-head")
      const { decoder } = yield* open(one)
      const loadWith = (modules: ReadonlyArray<string>) => {
        const config = { ...Object(one.config), modules_to_save: modules }
        const files = { ...adapterFiles(one), "adapter_config.json": json(config) }
        return Effect.map(
          Effect.flip(Adapter.load(inRecord(files), ".", decoder, { merging: true })),
          ({ message }) => message,
        )
      }
      assert.strictEqual(
        yield* loadWith(["norm", "lm_head", "score"]),
        "adapter_config.json: modules_to_save: expected modules that the model has, found score",
      )
      assert.include(
        yield* loadWith(Array.from({ length: 1025 }, (_, at) => `norm${at}`)),
        "at most 1024 names of modules",
      )
      assert.include(yield* loadWith(["norm", "lm_head", "embed_tokens"]), 'lacks "base_model.model.model.embed_tokens')
    }),
  )
})
