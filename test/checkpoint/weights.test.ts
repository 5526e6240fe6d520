import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as fc from "fast-check"
import * as pytorch from "../../src/checkpoint/pytorch.ts"
import * as safetensors from "../../src/checkpoint/safetensors.ts"
import * as Weights from "../../src/checkpoint/weights.ts"

/** Archives in the layout of `torch.save`, pickled by Python's own pickler, in base64. */
const archives = Schema.decodeUnknownSync(
  Schema.fromJsonString(
    Schema.Struct({
      weights: Schema.String,
      newer: Schema.String,
      nested: Schema.String,
      beyond: Schema.String,
      compressed: Schema.String,
      legacy: Schema.String,
      malicious: Schema.Record(Schema.String, Schema.String),
    }),
  ),
)(readFileSync(new URL("data/pytorch.json", import.meta.url), "utf8"))

const bytesOf = (base64: string): Uint8Array => new Uint8Array(Buffer.from(base64, "base64"))

const expected = {
  whole: { shape: [2, 3], data: Float32Array.of(1, 2, 3, 4, 5, 6) },
  turned: { shape: [3, 2], data: Float32Array.of(1, 4, 2, 5, 3, 6) },
  part: { shape: [2], data: Float32Array.of(5, 6) },
  spread: { shape: [2, 2], data: Float32Array.of(2, 3, 2, 3) },
  scalar: { shape: [], data: Float32Array.of(6) },
  half: { shape: [3], data: Float32Array.of(0.5, -2, 65504) },
  brain: { shape: [2], data: Float32Array.of(1, -3) },
  steps: { shape: [2], data: Float64Array.of(7, -(2 ** 40)) },
  flags: { shape: [2], data: Uint8Array.of(1, 0) },
}

describe("weights saved by PyTorch", () => {
  it("are read whatever their strides, kinds of number and shared storages", () => {
    assert.deepEqual(pytorch.decode(bytesOf(archives.weights)), expected)
    assert.deepEqual(pytorch.decode(bytesOf(archives.newer)), expected)
  })

  it("are found in dictionaries in dictionaries, beside what is no tensor", () => {
    assert.deepEqual(pytorch.decode(bytesOf(archives.nested)), {
      "model.w": { shape: [6], data: Float32Array.of(1, 2, 3, 4, 5, 6) },
    })
  })

  for (const [name, archive] of Object.entries(archives.malicious)) {
    it(`that would do more than be read are refused: ${name}`, () => {
      assert.throws(
        () => pytorch.decode(bytesOf(archive)),
        /at byte \d+: (it asks for "|instruction 0x|it calls |it sets )/,
      )
    })
  }

  it("that reach beyond their storage, are compressed or too old are refused with the reason", () => {
    assert.throws(() => pytorch.decode(bytesOf(archives.beyond)), /"w" reaches number 8 of a storage of 6/)
    assert.throws(() => pytorch.decode(bytesOf(archives.compressed)), /is compressed/)
    assert.throws(() => pytorch.decode(bytesOf(archives.legacy)), /before PyTorch 1.6/)
    assert.throws(() => pytorch.decode(new Uint8Array(5)), /no zip archive/)
  })

  it("with any bytes changed or cut off are read, or refused with a PytorchError", () => {
    const whole = bytesOf(archives.weights)
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 6 }),
        fc.nat(whole.length),
        fc.boolean(),
        (changes, length, cuts) => {
          const changed = whole.slice()
          for (const [at, byte] of changes) changed[at] = byte
          try {
            pytorch.decode(cuts ? changed.slice(0, length) : changed)
          } catch (error) {
            assert.instanceOf(error, pytorch.PytorchError)
          }
        },
      ),
      { numRuns: 2000 },
    )
  })
})

describe("weights in shards", () => {
  const tensors: safetensors.Tensors = {
    a: { shape: [4], data: Float32Array.of(1, 2, 3, 4) },
    b: { shape: [2, 2], data: Float32Array.of(5, 6, 7, 8) },
    c: { shape: [9], data: Float32Array.from({ length: 9 }, (_, index) => index) },
    d: { shape: [1], data: Int32Array.of(3) },
  }
  const readFrom = (files: Readonly<Record<string, Uint8Array>>) => (path: string) =>
    path in files ? Effect.succeed(files[path]) : Effect.fail(`no ${path}`)

  it.effect("have the names, the index and the sizes that Hugging Face's have, and come back", () =>
    Effect.gen(function* () {
      const files = yield* Weights.encode(tensors, { maxShardBytes: 32 })
      assert.deepEqual(Object.keys(files), [
        "model-00001-of-00003.safetensors",
        "model-00002-of-00003.safetensors",
        "model-00003-of-00003.safetensors",
        "model.safetensors.index.json",
      ])
      assert.deepEqual(JSON.parse(new TextDecoder().decode(files["model.safetensors.index.json"])), {
        metadata: { total_size: 72 },
        weight_map: {
          a: "model-00001-of-00003.safetensors",
          b: "model-00001-of-00003.safetensors",
          c: "model-00002-of-00003.safetensors",
          d: "model-00003-of-00003.safetensors",
        },
      })
      assert.deepEqual(yield* Weights.load(readFrom(files), "model.safetensors.index.json"), tensors)
      const whole = yield* Weights.encode(tensors)
      assert.deepEqual(yield* Weights.load(readFrom(whole), "model.safetensors"), tensors)
    }),
  )

  it.effect("of PyTorch's are read, too", () =>
    Effect.gen(function* () {
      const map = { whole: "pytorch_model-00001-of-00002.bin", "model.w": "pytorch_model-00002-of-00002.bin" }
      const files = {
        "m/pytorch_model.bin.index.json": new TextEncoder().encode(JSON.stringify({ metadata: {}, weight_map: map })),
        "m/pytorch_model-00001-of-00002.bin": bytesOf(archives.weights),
        "m/pytorch_model-00002-of-00002.bin": bytesOf(archives.nested),
      }
      const found = yield* Weights.load(readFrom(files), "m/pytorch_model.bin.index.json")
      assert.deepEqual(Object.keys(found), ["whole", "model.w"])
      assert.deepEqual(found.whole, expected.whole)
    }),
  )

  const indexOf = (map: unknown) => ({ "i.index.json": new TextEncoder().encode(JSON.stringify({ weight_map: map })) })
  for (const [what, map, message] of [
    ["lie elsewhere", { a: "../../secret.safetensors" }, /the shard "..\/..\/secret.safetensors" is not a file beside/],
    ["lack a tensor", { z: "s.safetensors" }, /s.safetensors: there is no tensor "z", which i.index.json says is here/],
    ["are no map", { a: 3 }, /i.index.json: it is no index of shards: .*weight_map/],
    ["are of no format", { a: "s.txt" }, /weights are .safetensors, .bin/],
  ] as const) {
    it.effect(`that ${what} are refused`, () =>
      Effect.gen(function* () {
        const files = {
          ...indexOf(map),
          "s.safetensors": safetensors.encode(tensors),
          "s.txt": new Uint8Array(3),
        }
        const error = yield* Effect.flip(Weights.load(readFrom(files), "i.index.json"))
        assert.match(typeof error === "string" ? error : error.message, message)
      }),
    )
  }
})

describe("safetensors of others", () => {
  it("with half floats and 64-bit integers are read as numbers that hold them", () => {
    const header = JSON.stringify({
      half: { dtype: "F16", shape: [2], data_offsets: [0, 4] },
      brain: { dtype: "BF16", shape: [2], data_offsets: [4, 8] },
      long: { dtype: "I64", shape: [1], data_offsets: [8, 16] },
      small: { dtype: "I8", shape: [3], data_offsets: [16, 19] },
      flag: { dtype: "BOOL", shape: [1], data_offsets: [19, 20] },
    })
    const bytes = new Uint8Array(8 + header.length + 20)
    const view = new DataView(bytes.buffer)
    view.setBigUint64(0, BigInt(header.length), true)
    bytes.set(new TextEncoder().encode(header), 8)
    const at = 8 + header.length
    view.setUint16(at, 0x3c00, true)
    view.setUint16(at + 2, 0x0001, true)
    view.setUint16(at + 4, 0x4049, true)
    view.setUint16(at + 6, 0xff80, true)
    view.setBigInt64(at + 8, -5n, true)
    bytes.set([1, 255, 128, 1], at + 16)
    assert.deepEqual(safetensors.decode(bytes), {
      half: { shape: [2], data: Float32Array.of(1, 2 ** -24) },
      brain: { shape: [2], data: Float32Array.of(3.140625, -Infinity) },
      long: { shape: [1], data: Float64Array.of(-5) },
      small: { shape: [3], data: Int32Array.of(1, -1, -128) },
      flag: { shape: [1], data: Uint8Array.of(1) },
    })
  })
})
