import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as safetensors from "../../../src/base/formats/safetensors.ts"
import * as Weights from "../../../src/base/formats/Weights.ts"
import { disk, memoryRun, temporaryRun } from "../../run/store/disk.ts"
import { dict, tensor, torchFile } from "./torchFile.ts"

const floats = (...numbers: ReadonlyArray<number>) => ({ shape: [numbers.length], data: Float32Array.from(numbers) })
const weights = { a: floats(1, 2), b: floats(3, 4, 5), c: floats(6), d: { shape: [], data: Int32Array.of(7) } }

const torch = (name: string, numbers: Float32Array): Uint8Array =>
  torchFile(dict({ [name]: tensor({ elements: numbers.length, shape: [numbers.length], stride: [1] }) }), {
    0: numbers,
  })

const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value))
const index = (weight_map: Readonly<Record<string, unknown>>): Uint8Array => json({ metadata: {}, weight_map })
const shardsOf = (run: { list: (path: string) => Effect.Effect<ReadonlyArray<string>, unknown> }) => run.list("export")

describe("weights", () => {
  for (const [where, open] of Object.entries({ "on disk": temporaryRun, "in memory": memoryRun })) {
    it.effect(`${where} are one file, or several with an index, and never both`, () =>
      Effect.gen(function* () {
        const run = yield* open
        assert.strictEqual(yield* Weights.save(run, "export/model.safetensors", weights), "export/model.safetensors")
        assert.deepEqual(yield* shardsOf(run), ["model.safetensors"])
        assert.deepEqual(yield* Weights.load(run, "export/model.safetensors"), weights)

        const path = yield* Weights.save(run, "export/model.safetensors", weights, { maxShardBytes: 12 })
        assert.strictEqual(path, "export/model.safetensors.index.json")
        assert.deepEqual(yield* shardsOf(run), [
          "model-00001-of-00003.safetensors",
          "model-00002-of-00003.safetensors",
          "model-00003-of-00003.safetensors",
          "model.safetensors.index.json",
        ])
        assert.deepEqual(yield* Weights.load(run, path), weights)

        yield* Weights.save(run, "export/model.safetensors", { a: weights.a })
        assert.isFalse(yield* run.exists(path))
        assert.deepEqual(yield* Weights.load(run, "export/model.safetensors"), { a: weights.a })
      }).pipe(Effect.provide(disk)),
    )
  }

  it.effect("in several files are laid out as Hugging Face's loaders expect", () =>
    Effect.gen(function* () {
      const files = yield* Weights.encode(weights, { name: "policy", maxShardBytes: 12 })
      const last = "policy.safetensors.index.json"
      assert.deepEqual(JSON.parse(new TextDecoder().decode(files[last])), {
        metadata: { total_size: 28 },
        weight_map: {
          a: "policy-00001-of-00003.safetensors",
          b: "policy-00002-of-00003.safetensors",
          c: "policy-00003-of-00003.safetensors",
          d: "policy-00003-of-00003.safetensors",
        },
      })
      assert.strictEqual(Object.keys(files).at(-1), last)
      for (const [name, bytes] of Object.entries(files)) {
        if (name !== last) assert.deepEqual(safetensors.metadata(bytes), { format: "pt" })
      }
    }),
  )

  it.effect("larger than a shard get a shard of their own; half floats count two bytes", () =>
    Effect.gen(function* () {
      const half = { shape: [4], data: Float32Array.of(1, 2, 3, 4), dtype: "F16" as const }
      const files = yield* Weights.encode({ half, large: floats(1, 2, 3, 4), after: floats(1) }, { maxShardBytes: 8 })
      assert.strictEqual(Object.keys(files).length, 4)
      assert.deepEqual(safetensors.decode(files["model-00001-of-00003.safetensors"]), { half })
      assert.deepEqual(yield* Weights.load(Weights.inRecord(files), "model.safetensors.index.json"), {
        half,
        large: floats(1, 2, 3, 4),
        after: floats(1),
      })
      assert.deepEqual(Object.keys(yield* Weights.encode({})), ["model.safetensors"])
    }),
  )

  it.effect("of PyTorch are read from one file of any of its names, or from several", () =>
    Effect.gen(function* () {
      const one = torch("a", Float32Array.of(1, 2))
      for (const name of ["pytorch_model.bin", "best.pt", "old/best.pth"]) {
        assert.deepEqual(yield* Weights.load(Weights.inRecord({ [name]: one }), name), { a: floats(1, 2) })
      }
      const several = {
        "m/1.bin": one,
        "m/2.bin": torch("b", Float32Array.of(3)),
        "m/pytorch_model.bin.index.json": index({ a: "1.bin", b: "2.bin" }),
      }
      assert.deepEqual(yield* Weights.load(Weights.inRecord(several), "m/pytorch_model.bin.index.json"), {
        a: floats(1, 2),
        b: floats(3),
      })
    }),
  )

  const path = "m/model.safetensors.index.json"
  const shard = safetensors.encode({ a: floats(1) })
  const escapes = (file: string) =>
    `tensor "a": expected the name of a file in the folder of the index, found "${file}"`
  it.effect.each([
    ["no file", {}, path, `${path}: it is missing`],
    [
      "no format",
      { "a.onnx": shard },
      "a.onnx",
      "a.onnx: expected a folder with weights, or a file named .safetensors",
    ],
    ["a torn file", { "a.safetensors": shard.slice(1) }, "a.safetensors", "a.safetensors: "],
    ["a file of another format", { "a.bin": shard }, "a.bin", "a.bin: expected a zip archive"],
    ["no index in it", { [path]: json([]) }, path, `${path}: it is not a shard index: `],
    ["an index that is no JSON", { [path]: shard }, path, `${path}: it is not a shard index: `],
    ["a map that names no files", { [path]: index({ a: 1 }) }, path, `${path}: it is not a shard index: `],
    ["no map", { [path]: json({ metadata: {} }) }, path, `${path}: it is not a shard index: `],
    ["an empty map", { [path]: index({}) }, path, `${path}: it is not a shard index: its weight_map names no tensors`],
    [
      "a tensor twice",
      { [path]: new TextEncoder().encode(`{"weight_map":{"a":"1.safetensors","\\u0061":"2.safetensors"}}`) },
      path,
      `${path}: it is not a shard index: it has "a" twice`,
    ],
    ["a missing shard", { [path]: index({ a: "1.safetensors" }) }, path, "m/1.safetensors: it is missing"],
    [
      "a shard that lacks a tensor",
      { [path]: index({ a: "1.safetensors", b: "1.safetensors" }), "m/1.safetensors": shard },
      path,
      `m/1.safetensors: it lacks "b", which ${path} says it has`,
    ],
    [
      "a shard of no format",
      { [path]: index({ a: "1" }), "m/1": shard },
      path,
      "m/1: expected a file named .safetensors",
    ],
    ["an index as a shard", { [path]: index({ a: "model.safetensors.index.json" }) }, path, "expected a file named"],
    [
      "a shard above",
      { [path]: index({ a: "../1.safetensors" }), "1.safetensors": shard },
      path,
      escapes("../1.safetensors"),
    ],
    ["a shard below", { [path]: index({ a: "n/1.safetensors" }) }, path, escapes("n/1.safetensors")],
    ["a shard anywhere", { [path]: index({ a: "/etc/1.safetensors" }) }, path, escapes("/etc/1.safetensors")],
    ["a shard as on Windows", { [path]: index({ a: "..\\1.safetensors" }) }, path, escapes("..\\1.safetensors")],
    ["a folder as a shard", { [path]: index({ a: ".." }) }, path, escapes("..")],
    ["a nameless shard", { [path]: index({ a: "" }) }, path, escapes("")],
  ] as const)("with %s are refused", ([, files, wanted, message]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Weights.load(Weights.inRecord(files), wanted))
      assert.strictEqual(error._tag, "FormatError")
      assert.include(error.message, message)
      assert.isTrue(error.message.startsWith(`${error.path}: `))
    }),
  )

  it.effect("in several files are those that the index names, and no others", () =>
    Effect.gen(function* () {
      const both = safetensors.encode({ a: floats(1), b: floats(2) })
      const files = Weights.inRecord({ [path]: index({ b: "1.safetensors" }), "m/1.safetensors": both })
      assert.deepEqual(yield* Weights.load(files, path), { b: floats(2) })
    }),
  )

  it.effect("that cannot be written are refused", () =>
    Effect.gen(function* () {
      const run = yield* memoryRun
      const wrong = yield* Effect.flip(Weights.save(run, "model.bin", weights))
      assert.strictEqual(wrong.message, "model.bin: expected a path ending in .safetensors")
      const none = yield* Effect.flip(Weights.save(run, "model.safetensors", weights, { maxShardBytes: 0 }))
      assert.strictEqual(none.message, "model.safetensors: maxShardBytes: expected a number above 0, found 0")
      const shape = yield* Effect.flip(Weights.encode({ a: { shape: [3], data: Float32Array.of(1) } }))
      assert.include(shape.message, `model.safetensors: tensor "a" has 1 numbers`)
    }),
  )
})

describe("a folder of weights", () => {
  const one = (name: string, value: number) => safetensors.encode({ [name]: floats(value) })
  const all: Readonly<Record<string, Uint8Array>> = {
    "model.safetensors.index.json": index({ a: "model-00001-of-00001.safetensors" }),
    "pytorch_model.bin.index.json": index({ b: "pytorch_model-00001-of-00001.bin" }),
    "model.safetensors": one("c", 3),
    "pytorch_model.bin": torch("d", Float32Array.of(4)),
    "model.pt": torch("e", Float32Array.of(5)),
    "weights.pth": torch("f", Float32Array.of(6)),
  }
  const shards = {
    "model-00001-of-00001.safetensors": one("a", 1),
    "pytorch_model-00001-of-00001.bin": torch("b", Float32Array.of(2)),
    "config.json": json({}),
  }

  for (const [where, open] of Object.entries({ "on disk": temporaryRun, "in memory": memoryRun })) {
    it.effect(`${where} is read by the first of an index, safetensors, PyTorch's own`, () =>
      Effect.gen(function* () {
        const run = yield* open
        for (const [name, bytes] of Object.entries({ ...all, ...shards })) yield* run.write(`pretrained/${name}`, bytes)
        for (const [at, name] of Object.keys(all).entries()) {
          for (const path of ["pretrained", "pretrained/"]) {
            assert.deepEqual(Object.keys(yield* Weights.load(run, path)), ["abcdef"[at]])
          }
          yield* run.remove(`pretrained/${name}`)
        }
        const { message } = yield* Effect.flip(Weights.load(run, "pretrained"))
        assert.match(
          message,
          /^pretrained: expected a file of weights, .safetensors.index.json or .*; found config.json, /,
        )
        assert.include(
          (yield* Effect.flip(Weights.load(run, "nowhere"))).message,
          "nowhere: expected a folder with weights, or a file named .safetensors",
        )
      }).pipe(Effect.provide(disk)),
    )
  }

  it.effect("may use other file names if only one file fits", () =>
    Effect.gen(function* () {
      const policy = { "policy.safetensors": one("p", 1) }
      assert.hasAllKeys(yield* Weights.load(Weights.inRecord(policy), "."), ["p"])
      const two = Weights.inRecord({ ...policy, "value.safetensors": one("v", 2) })
      assert.strictEqual(
        (yield* Effect.flip(Weights.load(two, ""))).message,
        ": found policy.safetensors, value.safetensors, none of them named model or pytorch_model or weights; give the path of one file",
      )
      // A checkpoint of ours holds other tensors beside its weights.
      const checkpoint = { ...policy, "weights.safetensors": one("w", 3), "x/model.safetensors": one("x", 4) }
      assert.hasAllKeys(yield* Weights.load(Weights.inRecord(checkpoint), ""), ["w"])
    }),
  )
})

describe("tied weights", () => {
  const tied = { "head.weight": "embed.weight" }
  const names = ["embed.weight", "head.weight", "bias"]
  const holding = (...present: ReadonlyArray<string>) =>
    Weights.inRecord({
      "model.safetensors": safetensors.encode(Object.fromEntries(present.map((name, at) => [name, floats(at)]))),
    })

  it.effect("are filled in from whichever the file holds", () =>
    Effect.gen(function* () {
      for (const present of ["embed.weight", "head.weight"]) {
        const weights = yield* Weights.load(holding(present, "bias"), "model.safetensors", { tied, names })
        assert.strictEqual(weights["embed.weight"].data, weights["head.weight"].data)
      }
      const both = yield* Weights.load(holding("embed.weight", "head.weight", "bias"), ".", { tied, names })
      assert.deepEqual(Object.keys(both).toSorted(), names.toSorted())
    }),
  )

  it.effect("don't excuse a missing parameter or one that the model lacks", () =>
    Effect.gen(function* () {
      const refused = (...present: ReadonlyArray<string>) =>
        Effect.map(
          Effect.flip(Weights.load(holding(...present), "model.safetensors", { tied, names })),
          ({ message }) => message,
        )
      assert.strictEqual(
        yield* refused("embed.weight"),
        'model.safetensors: it lacks "bias", and no tied parameter has its tensor',
      )
      assert.include(yield* refused("bias"), 'it lacks "embed.weight", "head.weight"')
      assert.strictEqual(yield* refused("embed.weight", "bias", "other"), 'model.safetensors: the model has no "other"')
    }),
  )
})
