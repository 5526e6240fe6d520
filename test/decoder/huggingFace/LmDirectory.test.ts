import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as safetensors from "../../../src/base/formats/safetensors.ts"
import * as LmDirectory from "../../../src/decoder/huggingFace/LmDirectory.ts"
import { parametersOf } from "../../../src/decoder/networks/parameters.ts"
import { onDisk } from "../../../src/run/store/FileTree.ts"
import { byteLevel } from "../../../src/base/tokens/scratch.ts"
import { load } from "../../../src/base/tokens/TokenizerFolder.ts"
import { disk, temporaryDirectory } from "../../run/store/disk.ts"
import { dict, global, op, pickle, string, tensor, tuple, zip } from "../../base/formats/torchFile.ts"
import { filesOf, fixtures, inMemory, json, jsonOf } from "../../base/tokens/fixtures.ts"

const llama = filesOf("llama")
const stored = safetensors.decode(llama["model.safetensors"])
/** The files of the model itself, without those that hold expected gradients. */
const files = Object.fromEntries(
  Object.entries(llama).filter(([name]) => name === "model.safetensors" || !name.endsWith(".safetensors")),
)

/** The files of the fixture below `m/`, with other contents. */
const changed = (others: Readonly<Record<string, Uint8Array | undefined>>): Record<string, Uint8Array> =>
  Object.fromEntries(
    Object.entries({ ...files, ...others }).flatMap(([name, bytes]) =>
      bytes === undefined ? [] : [[`m/${name}`, bytes] as const],
    ),
  )
const message = (others: Readonly<Record<string, Uint8Array | undefined>>) =>
  Effect.map(Effect.flip(LmDirectory.open(inMemory(changed(others)), "m")), ({ message }) => message)
const weights = (tensors: safetensors.TensorEntries) => ({ "model.safetensors": safetensors.encode(tensors) })

/** Returns a file of PyTorch with these tensors of the fixture. */
const torchFileOf = (names: ReadonlyArray<string>): Uint8Array => {
  const tensors = names.map((name, at) => {
    const { shape, data } = stored[name]
    const stride = shape.map((_, axis) => shape.slice(axis + 1).reduce((size, length) => size * length, 1))
    return [name, tensor({ key: String(at), elements: data.length, shape, stride })] as const
  })
  const storages = names.map((name, at): readonly [string, ReadonlyArray<number>] => {
    const { buffer, byteOffset, byteLength } = stored[name].data
    return [`a/data/${at}`, Array.from(new Uint8Array(buffer, byteOffset, byteLength))]
  })
  return zip([["a/data.pkl", pickle(dict(Object.fromEntries(tensors)))], ...storages])
}

/** Returns the options for a model whose folder has no tokenizer. */
const tokenizer = Effect.map(load(inMemory(llama), "."), (tokenizer) => ({ tokenizer }))

describe("the folder of a language model", () => {
  it.effect("is opened with its config, tokenizer, template and weights", () =>
    Effect.gen(function* () {
      const tree = yield* onDisk(fixtures)
      const model = yield* LmDirectory.open(tree, "llama")
      assert.strictEqual(model.decoder.hiddenSize, 64)
      assert.deepEqual(model.eosIds, [1])
      assert.strictEqual(model.weights.path, "llama/model.safetensors")
      assert.strictEqual(model.weights.type, "float32")
      const all = yield* model.weights.readAll
      assert.deepEqual(Object.keys(all).toSorted(), Object.keys(stored).toSorted())
      for (const [name, { shape, data }] of Object.entries(all)) {
        assert.deepEqual(shape, stored[name].shape)
        assert.deepEqual(data, stored[name].data, name)
      }
      assert.strictEqual(model.tokenizer.decode(model.tokenizer.encode("hello world")), "hello world")
    }).pipe(Effect.provide(disk)),
  )

  it.effect("in seven shards has the same weights", () =>
    Effect.gen(function* () {
      const tree = yield* onDisk(fixtures)
      const { weights } = yield* LmDirectory.open(tree, "llama-sharded", yield* tokenizer)
      assert.strictEqual(weights.path, "llama-sharded/model.safetensors.index.json")
      const all = yield* weights.readAll
      assert.strictEqual(Object.keys(all).length, Object.keys(stored).length)
      for (const [name, { data }] of Object.entries(all)) assert.deepEqual(data, stored[name].data, name)
    }).pipe(Effect.provide(disk)),
  )

  it.effect("in files of PyTorch, whole or in shards, has the same weights", () =>
    Effect.gen(function* () {
      const names = Object.keys(stored)
      const [first, second] = [names.slice(0, 5), names.slice(5)]
      const shards = ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"]
      const weightMap = Object.fromEntries(names.map((name, at) => [name, shards[at < 5 ? 0 : 1]]))
      const whole = { "pytorch_model.bin": torchFileOf(names) }
      const sharded = {
        [shards[0]]: torchFileOf(first),
        [shards[1]]: torchFileOf(second),
        "pytorch_model.bin.index.json": json({ metadata: { total_size: 1 }, weight_map: weightMap }),
      }
      for (const [others, path] of [
        [whole, "m/pytorch_model.bin"],
        [sharded, "m/pytorch_model.bin.index.json"],
      ] as const) {
        const model = yield* LmDirectory.open(inMemory(changed({ ...others, "model.safetensors": undefined })), "m")
        assert.deepEqual([model.weights.path, model.weights.type], [path, "float32"])
        const all = yield* model.weights.readAll
        for (const [name, { data }] of Object.entries(all)) assert.deepEqual(data, stored[name].data, name)
      }
      const lacking = yield* message({ "pytorch_model.bin": torchFileOf(first), "model.safetensors": undefined })
      assert.include(lacking, "m/pytorch_model.bin: it lacks ")
      const attack = zip([["a/data.pkl", pickle([...global("os", "system"), ...tuple(string("true")), op.reduce])]])
      const refused = yield* message({ "pytorch_model.bin": attack, "model.safetensors": undefined })
      assert.match(refused, /^m\/pytorch_model\.bin: .*os\.system/)
    }),
  )

  it.effect("in bfloat16 has weights near those in float32", () =>
    Effect.gen(function* () {
      const tree = yield* onDisk(fixtures)
      const { weights, config } = yield* LmDirectory.open(tree, "llama-bf16", yield* tokenizer)
      assert.deepEqual([weights.type, config.weightType], ["bfloat16", "bfloat16"])
      const { data } = yield* weights.read("model.layers.1.mlp.up_proj.weight")
      const exact = stored["model.layers.1.mlp.up_proj.weight"].data
      assert.isTrue(data.every((value, index) => Math.abs(value - exact[index]) <= Math.abs(exact[index]) / 256))
      assert.isFalse(data.every((value, index) => value === exact[index]))
    }).pipe(Effect.provide(disk)),
  )

  it.effect("that is written and read again is equal: whole, in shards, and in smaller numbers", () =>
    Effect.gen(function* () {
      const read = yield* LmDirectory.open(yield* onDisk(fixtures), "llama")
      const all = yield* read.weights.readAll
      const model = { ...read, weights: all }
      const tree = yield* onDisk(yield* temporaryDirectory)
      for (const options of [{}, { maxShardBytes: 100_000 }, { type: "bfloat16" }, { type: "float16" }] as const) {
        yield* LmDirectory.save(tree, "saved", model, options)
        const again = yield* LmDirectory.open(tree, "saved")
        assert.deepEqual(again.decoder, read.decoder)
        assert.deepEqual(again.eosIds, read.eosIds)
        assert.deepEqual([again.config.bosId, again.config.padId], [0, 2])
        assert.strictEqual(again.config.json.initializer_range, 0.02)
        assert.deepEqual(again.otherFiles, read.otherFiles)
        assert.strictEqual(again.weights.type, "type" in options ? options.type : "float32")
        assert.strictEqual(again.weights.path.endsWith("index.json"), "maxShardBytes" in options)
        const twice = yield* again.weights.readAll
        if (!("type" in options)) assert.deepEqual(twice, all)
        // Saved once more in the same type, the bits stay.
        const contents = yield* LmDirectory.filesOf({ ...model, weights: twice }, options)
        for (const [name, parts] of Object.entries(contents)) {
          const bytes = parts instanceof Uint8Array ? parts : new Uint8Array(Buffer.concat([...parts]))
          assert.deepEqual(yield* tree.read(`saved/${name}`), bytes, name)
        }
      }
      assert.deepEqual(yield* tree.list("."), ["saved"])
    }).pipe(Effect.provide(disk)),
  )

  it.effect("of a model from scratch can be opened, also with a tied head", () =>
    Effect.gen(function* () {
      const made = yield* byteLevel()
      const read = yield* LmDirectory.open(inMemory(files))
      const decoder = { ...read.decoder, vocabSize: made.tokenizer.vocabSize, tiedEmbeddings: true, layers: 1 }
      const values = Object.fromEntries(
        Object.entries(parametersOf(decoder)).map(([name, { shape }]) => [
          name,
          { shape, data: new Float32Array(shape.reduce((size, length) => size * length, 1)).fill(0.5) },
        ]),
      )
      assert.notProperty(values, "lm_head.weight")
      const tree = yield* onDisk(yield* temporaryDirectory)
      const eosIds = [made.tokenizer.special.eos ?? -1]
      yield* LmDirectory.save(tree, "scratch", {
        decoder,
        weights: values,
        otherFiles: made.files,
        eosIds,
        config: { padId: 0 },
      })
      const again = yield* LmDirectory.open(tree, "scratch")
      assert.deepEqual(again.decoder, decoder)
      assert.deepEqual(again.eosIds, eosIds)
      assert.deepEqual(yield* again.weights.readAll, values)
    }).pipe(Effect.provide(disk)),
  )

  it.effect("with a tied head may hold it twice, and old files hold rotary frequencies", () =>
    Effect.gen(function* () {
      const config = json({ ...jsonOf("llama/config.json"), tie_word_embeddings: true })
      const frequencies = { "model.layers.0.self_attn.rotary_emb.inv_freq": { shape: [1], data: Float32Array.of(1) } }
      const others = { "config.json": config, ...weights({ ...stored, ...frequencies }) }
      const { weights: opened } = yield* LmDirectory.open(inMemory(changed(others)), "m")
      assert.notProperty(yield* opened.readAll, "lm_head.weight")
    }),
  )

  it.effect("has defaults of generation", () =>
    Effect.gen(function* () {
      const generation = { temperature: 0.6, top_p: 0.9, top_k: null, max_new_tokens: 7, eos_token_id: [2, 5] }
      const others = changed({ "generation_config.json": json(generation) })
      const model = yield* LmDirectory.open(inMemory(others), "m")
      assert.deepEqual(model.generation, { temperature: 0.6, topP: 0.9, maxTokens: 7 })
      assert.deepEqual(model.eosIds, [2, 5, 1])
    }),
  )

  it.effect("that is damaged fails with the file, the tensor and what was expected", () =>
    Effect.gen(function* () {
      const name = "model.layers.0.mlp.up_proj.weight"
      const { [name]: tensor, ...without } = stored
      const file = "m/model.safetensors"
      assert.strictEqual(yield* message(weights(without)), `${file}: it lacks "${name}", which the config expects`)
      assert.strictEqual(
        yield* message(weights({ ...stored, "model.layers.2.mlp.up_proj.weight": tensor })),
        `${file}: expected only the tensors that the config describes, found "model.layers.2.mlp.up_proj.weight"`,
      )
      assert.strictEqual(
        yield* message(weights({ ...stored, [name]: { ...tensor, shape: [64, 112] } })),
        `${file}: tensor "${name}": expected the shape [112, 64], found [64, 112]`,
      )
      const integers = { shape: tensor.shape, data: Int32Array.from(tensor.data) }
      assert.strictEqual(
        yield* message(weights({ ...stored, [name]: integers })),
        `${file}: tensor "${name}": expected F32, BF16, F16, found I32`,
      )
      const cut = llama["model.safetensors"].subarray(0, 400_000)
      assert.match(
        yield* message({ "model.safetensors": cut }),
        /^m\/model\.safetensors: tensor ".+" ends at .+, beyond/,
      )
      assert.match(yield* message({ "model.safetensors": cut.subarray(0, 5) }), /^m\/model\.safetensors: .*5 bytes/)
      assert.match(yield* message({ "model.safetensors": undefined }), /^m: expected a file of weights/)
      assert.match(yield* message({ "config.json": undefined }), /^m\/config\.json: /)
      assert.match(
        yield* message({ "config.json": json({ ...jsonOf("llama/config.json"), vocab_size: 383 }) }),
        /^m\/tokenizer\.json: expected token ids below 383, the vocab_size of m\/config\.json, found the id 383/,
      )
      assert.strictEqual(
        yield* message({ "generation_config.json": json({ eos_token_id: 400 }) }),
        "m/generation_config.json: eos_token_id: expected an id below 384, found 400",
      )
    }),
  )

  it.effect("that lacks a shard, or a tensor of one, fails with the shard's name", () =>
    Effect.gen(function* () {
      const shards = filesOf("llama-sharded")
      const sharded = (others: Readonly<Record<string, Uint8Array | undefined>>) =>
        message({ "model.safetensors": undefined, ...shards, ...others })
      const third = "model-00003-of-00007.safetensors"
      assert.strictEqual(yield* sharded({ [third]: undefined }), `m/${third}: it is missing`)
      const { [Object.keys(safetensors.decode(shards[third]))[0]]: _, ...rest } = safetensors.decode(shards[third])
      assert.match(
        yield* sharded({ [third]: safetensors.encode(rest) }),
        /^m\/model-00003-of-00007\.safetensors: it lacks ".+", which m\/model\.safetensors\.index\.json says it has/,
      )
      assert.match(
        yield* sharded({ [third]: shards[third].subarray(0, 30_000) }),
        /^m\/model-00003-of-00007\.safetensors: .*beyond/,
      )
    }),
  )

  it.effect("is not written without a parameter, and an interrupted write leaves the old folder", () =>
    Effect.gen(function* () {
      const read = yield* LmDirectory.open(inMemory(files))
      const all = yield* read.weights.readAll
      const { "model.norm.weight": _, ...missing } = all
      const tree = yield* onDisk(yield* temporaryDirectory)
      const failed = yield* Effect.flip(LmDirectory.save(tree, "saved", { ...read, weights: missing }))
      assert.strictEqual(failed.message, `model.safetensors: the parameter "model.norm.weight" is missing`)
      const wrong = { ...all, "model.norm.weight": { shape: [2], data: Float32Array.of(1, 2) } }
      const shape = yield* Effect.flip(LmDirectory.save(tree, "saved", { ...read, weights: wrong }))
      assert.include(shape.message, `parameter "model.norm.weight": expected the shape [64], found 2 numbers in [2]`)
      assert.deepEqual(yield* tree.list("."), [])
    }).pipe(Effect.provide(disk)),
  )
})
