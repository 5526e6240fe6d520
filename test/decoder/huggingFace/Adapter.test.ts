import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, Record } from "effect"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import * as safetensors from "../../../src/base/formats/safetensors.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import * as Adapter from "../../../src/decoder/huggingFace/Adapter.ts"
import { openWeights } from "../../../src/decoder/huggingFace/modelWeights.ts"
import { onDisk } from "../../../src/run/store/FileTree.ts"
import { compileWith } from "../../../property-tests/support/agreement.ts"
import { feedSequences } from "../../../property-tests/support/decoders.ts"
import { disk, temporaryDirectory } from "../../run/store/disk.ts"
import { filesOf, fixtures, inMemory, json, jsonOf } from "../../base/tokens/fixtures.ts"
import { config as decoder, expected, relativeError, write } from "../networks/fixture.ts"

const files = filesOf("llama/adapter")
const settings = jsonOf("llama/adapter/adapter_config.json")
const stored = safetensors.decode(files["adapter_model.safetensors"])
const tensorName = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"

/** Returns the fixture's tensors of some projections. */
const only = (...names: ReadonlyArray<string>): safetensors.TensorEntries =>
  Object.fromEntries(Object.entries(stored).filter(([tensor]) => names.some((name) => tensor.includes(`.${name}.`))))

/** Loads the fixture's adapter after a change of its config and tensors. */
const loadWith = (config: unknown, tensors: safetensors.TensorEntries = stored) =>
  Adapter.load(
    inMemory({
      "a/adapter_config.json": json({ ...settings, ...Object(config) }),
      "a/adapter_model.safetensors": safetensors.encode(tensors),
    }),
    "a",
    decoder,
  )
const message = (config: unknown, tensors: safetensors.TensorEntries = stored) =>
  Effect.map(Effect.flip(loadWith(config, tensors)), ({ message }) => message)

const base = Effect.flatMap(onDisk(fixtures), (tree) =>
  Effect.flatMap(openWeights(tree, "llama", decoder), ({ readAll }) => readAll),
)

/** Returns the logits of the fixture's last positions. */
const lastLogits = (weights: Readonly<Record<string, { readonly data: Float32Array }>>) => {
  const inputs = Decoder.packedInputs(3, 17)
  const parameters = Decoder.statesOf(Decoder.parametersOf(decoder))
  const program = compileWith(Reference.layer, {
    name: "merged",
    inputs: { ...inputs },
    state: Record.map(parameters, (tensor) => ({ tensor })),
    outputs: { logits: Decoder.packedLogits(decoder, parameters, inputs) },
  })
  write(
    program,
    Record.map(weights, ({ data }) => data),
  )
  feedSequences(
    program,
    17,
    expected.forward.input_ids.map((row) => [row]),
  )
  program.runSync?.()
  const { logits } = program.results
  return expected.lora.logits_last.map((_, row) => {
    const end = (row + 1) * 17 * decoder.vocabSize
    return logits.slice(end - decoder.vocabSize, end)
  })
}

describe("an adapter of peft", () => {
  it.effect("is loaded with its settings and matrices", () =>
    Effect.gen(function* () {
      const adapter = yield* Adapter.load(yield* onDisk(fixtures), "llama/adapter", decoder)
      assert.strictEqual(adapter.rank, 4)
      assert.sameMembers([...adapter.targets], [...Decoder.projections])
      assert.strictEqual(adapter.alpha, 8)
      assert.strictEqual(Object.keys(adapter.tensors).length, Object.keys(stored).length)
      for (const [name, { data }] of Object.entries(adapter.tensors))
        assert.deepEqual(data, stored[`base_model.model.${name}`].data)
      new Decoder.MultiLoRA(decoder, adapter, 1).load(0, adapter, adapter.tensors)
    }).pipe(Effect.provide(disk)),
  )

  it.effect("that is merged gives the logits of peft", () =>
    Effect.gen(function* () {
      const adapter = yield* Adapter.load(yield* onDisk(fixtures), "llama/adapter", decoder)
      const weights = yield* base
      const merged = Adapter.merge(decoder, weights, adapter).weights
      for (const [row, logits] of lastLogits(merged).entries())
        assert.isBelow(relativeError(logits, expected.lora.logits_last[row]), 1e-4)
      assert.strictEqual(merged["model.norm.weight"], weights["model.norm.weight"])
      assert.isAbove(relativeError(lastLogits(weights)[0], expected.lora.logits_last[0]), 1e-2)
    }).pipe(Effect.provide(disk)),
  )

  it.effect("that is written and read again is equal", () =>
    Effect.gen(function* () {
      const tree = yield* onDisk(yield* temporaryDirectory)
      const read = yield* loadWith({ base_model_name_or_path: "models/llama" })
      yield* Adapter.save(tree, "out", read, decoder)
      assert.deepEqual(yield* tree.list("out"), ["adapter_config.json", "adapter_model.safetensors"])
      assert.deepEqual(yield* Adapter.load(tree, "out", decoder), read)
      const written = safetensors.decode(yield* tree.read("out/adapter_model.safetensors"))
      assert.deepEqual(written, stored)
      assert.deepEqual(safetensors.metadata(yield* tree.read("out/adapter_model.safetensors")), { format: "pt" })
      const small = yield* loadWith({ use_rslora: true, target_modules: ["q_proj"] }, only("q_proj"))
      yield* Adapter.save(tree, "out", small, decoder, "bfloat16")
      const again = yield* Adapter.load(tree, "out", decoder)
      assert.deepEqual(again.config, small.config)
      assert.deepEqual(Object.keys(again.tensors), Object.keys(small.tensors))
    }).pipe(Effect.provide(disk)),
  )

  it.effect("names its targets by the ends of names, by an expression, or all", () =>
    Effect.gen(function* () {
      const targets = (target: unknown, ...names: ReadonlyArray<string>) =>
        Effect.map(loadWith({ target_modules: target }, only(...names)), ({ targets }) => [...targets])
      assert.deepEqual(yield* targets(["self_attn.v_proj", "up_proj", "unheard"], "v_proj", "up_proj"), [
        "v_proj",
        "up_proj",
      ])
      assert.deepEqual(yield* targets(".*\\.(q|k)_proj", "q_proj", "k_proj"), ["q_proj", "k_proj"])
      const regions = ["language|text", "self_attn|attention|attn|mlp|ffn|dense", "q_proj|k_proj|v_proj|gate_proj"]
      const published = `(?:${regions.map((words) => `.*?(?:${words})`).join("")}.*?)|(?:\\bmodel\\.layers\\.[\\d]{1,}\\.(?:${regions[1]})\\.(?:(?:q_proj)))`
      assert.deepEqual(yield* targets(published, "q_proj"), ["q_proj"])
      assert.deepEqual(yield* targets("all-linear", ...Decoder.projections), [...Decoder.projections])
      const targetError = (target: unknown) => message({ target_modules: target })
      const at = "a/adapter_config.json: target_modules: "
      const some = `expected some of ${Decoder.projections.join(", ")}, found`
      assert.strictEqual(yield* targetError(["c_attn"]), `${at}${some} ["c_attn"]`)
      assert.strictEqual(yield* targetError(["roj", "attn.q_proj"]), `${at}${some} ["roj","attn.q_proj"]`)
      assert.strictEqual(yield* targetError(["q_proj", "lm_head"]), `${at}${some} lm_head`)
      assert.strictEqual(
        yield* targetError(".*\\.0\\..*q_proj"),
        `${at}expected q_proj in all 2 layers or in none, found it in 1`,
      )
      assert.include(yield* targetError("("), at)
      for (const slow of ["([a-z0-9._]+)+!", `${".*".repeat(12)}!`, `${"a|".repeat(3000)}a`]) {
        const error = yield* targetError(slow)
        assert.match(
          error,
          /target_modules: the regular expression is refused: .*; list the ends of the modules' names/,
        )
      }
    }),
  )

  it.effect("divides alpha by the rank, or by its square root", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* loadWith({})).alpha, 8)
      assert.strictEqual((yield* loadWith({ use_rslora: true })).alpha, 16)
    }),
  )

  it.effect("that names another base model is used, with a warning", () =>
    Effect.gen(function* () {
      const warnings: Array<unknown> = []
      const logger = Logger.make(({ message }) => warnings.push(message))
      const named = inMemory({ ...files, "adapter_config.json": json({ ...settings, base_model_name_or_path: "b" }) })
      const loadFor = (base: string) =>
        Effect.provide(Adapter.load(named, ".", decoder, { base }), Logger.layer([logger]))
      yield* loadFor("b")
      assert.deepEqual(warnings, [])
      yield* loadFor("c")
      assert.match(String(warnings), /^adapter_config\.json: base_model_name_or_path: expected "c", found "b"/)
    }),
  )

  it.effect("can stand in a table with more targets, and computes the same", () =>
    Effect.gen(function* () {
      const adapter = yield* loadWith({ target_modules: ["v_proj"] }, only("v_proj"))
      const wider = Adapter.withTargets(adapter, decoder, Decoder.projections)
      const shape = { rank: 4, targets: Decoder.projections }
      new Decoder.MultiLoRA(decoder, shape, 1).load(0, wider, wider.tensors)
      const weights = yield* base
      assert.deepEqual(Adapter.merge(decoder, weights, wider), Adapter.merge(decoder, weights, adapter))
    }).pipe(Effect.provide(disk)),
  )

  for (const [key, value] of [
    ["use_dora", true],
    ["modules_to_save", ["lm_head"]],
    ["bias", "all"],
    ["lora_bias", true],
    ["rank_pattern", { q_proj: 5000 }],
    ["rank_pattern", { "([a-z]+)+!": 8 }],
    ["rank_pattern", Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`q?.${at}`, 8]))],
    ["alpha_pattern", { q_proj: -1 }],
    ["ensure_weight_tying", true],
    ["kasa_config", { beta: 1 }],
    ["layers_to_transform", [0]],
    ["init_lora_weights", "pissa"],
    ["peft_type", "IA3"],
    ["r", 0],
    ["lora_alpha", "8"],
  ] as const) {
    it.effect(`with ${key} ${JSON.stringify(value)} is refused by name`, () =>
      Effect.gen(function* () {
        const text = yield* message({ [key]: value })
        assert.match(
          text,
          new RegExp(`^a/adapter_config\\.json: ${key}(\\.q_proj)?: (expected|the regular expression) `),
        )
      }),
    )
  }

  it.effect("for another base, or that is damaged, is refused with the file and the tensor", () =>
    Effect.gen(function* () {
      const file = "a/adapter_model.safetensors"
      const ending = "; is the adapter for another base model?"
      const wide = { shape: [4, 128], data: new Float32Array(512) }
      assert.strictEqual(
        yield* message({}, { ...stored, [tensorName]: wide }),
        `${file}: tensor "${tensorName}": expected the shape [4, 64], found [4, 128]${ending}`,
      )
      const { [tensorName]: tensor, ...without } = stored
      assert.include(yield* message({}, without), `${file}: it lacks "${tensorName}"`)
      const third = tensorName.replace("layers.0", "layers.2")
      assert.include(yield* message({}, { ...stored, [third]: tensor }), `found "${third}"${ending}`)
      assert.include(yield* message({ r: 8 }), "expected the shape [8, 64], found [4, 64]")
    }),
  )
})
