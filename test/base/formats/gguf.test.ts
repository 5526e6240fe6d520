import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { open } from "../../../src/base/formats/gguf.ts"
import { inRecord } from "../../../src/base/formats/Weights.ts"
import { type GgufTensor, ggufFile } from "./ggufFile.ts"

/** Bytes of random blocks, and the numbers that llama.cpp's Python package makes of them. */
const blocks: Readonly<Record<string, { readonly bytes: string; readonly numbers: ReadonlyArray<number> }>> =
  JSON.parse(readFileSync(new URL("data/gguf-blocks.json", import.meta.url), "utf8"))
const ids = { F16: 1, BF16: 30, Q8_0: 8, Q4_K: 12, Q6_K: 14 } as const

const opened = (bytes: Uint8Array) => open(inRecord({ "m.gguf": bytes }), "m.gguf")
const message = (bytes: Uint8Array) => Effect.map(Effect.flip(opened(bytes)), (error) => error.message)

const one: GgufTensor = { name: "one", shape: [2, 3], type: 0, bytes: new Uint8Array(24) }

describe("a GGUF file", () => {
  for (const [type, id] of Object.entries(ids)) {
    it.effect(`has the numbers of ${type} that llama.cpp computes, bit for bit`, () =>
      Effect.gen(function* () {
        const { bytes, numbers } = blocks[type]
        const rows = id === 1 || id === 30 ? 4 : 2
        const shape = [rows, numbers.length / rows]
        const file = yield* opened(ggufFile([{ name: "w", shape, type: id, bytes: Buffer.from(bytes, "hex") }]))
        const { data, shape: found } = yield* file.read("w")
        assert.deepEqual(found, shape)
        assert.deepEqual(Array.from(data), numbers)
      }),
    )
  }

  it.effect("is read with a vocabulary that is longer than what is read at first", () =>
    Effect.gen(function* () {
      const tokens = Array.from({ length: 20_000 }, (_, at) => `token ${at}`)
      const keys = { "general.architecture": "qwen3", "tokenizer.ggml.tokens": tokens, "qwen3.block_count": 2 }
      const { metadata, tensors } = yield* opened(ggufFile([one], keys))
      assert.deepEqual(metadata, { "general.architecture": "qwen3", "qwen3.block_count": 2 })
      assert.deepEqual(tensors.get("one")?.shape, [2, 3])
    }),
  )

  const whole = ggufFile([one], { "general.architecture": "qwen3" })
  /** Replaces a number of 64 bits. */
  const withNumber = (at: number, value: number): Uint8Array => {
    const bytes = whole.slice()
    new DataView(bytes.buffer).setBigUint64(at, BigInt(value), true)
    return bytes
  }
  /** Two tensors, of which the second begins where the first does. */
  const shared = ggufFile([one, { ...one, name: "two" }])
  const second = Buffer.from(shared.buffer, shared.byteOffset, shared.byteLength).indexOf("two")
  new DataView(shared.buffer, shared.byteOffset).setBigUint64(second + 3 + 4 + 16 + 4, 0n, true)
  for (const [problem, bytes, expected] of [
    ["tensors that share bytes", shared, `tensor "two" begins at`],
    ["another beginning", new Uint8Array(64), "m.gguf: expected a GGUF file, which begins with GGUF"],
    ["too many tensors", withNumber(8, 2 ** 40), "expected at most 65536 tensors, found 1099511627776"],
    ["too many keys", withNumber(16, 2 ** 40), "expected at most 65536 keys, found 1099511627776"],
    ["a text without end", withNumber(24, 2 ** 50), "a length of 1125899906842624 bytes at 32, which the file lacks"],
    ["a header without end", whole.subarray(0, 50), "its header has a length of 20 bytes at 32, which the file lacks"],
    ["numbers that it lacks", whole.subarray(0, whole.length - 1), `tensor "one": expected 24 bytes at`],
    [
      "a shape that it lacks",
      ggufFile([{ ...one, shape: [2 ** 20, 2 ** 20] }]),
      `tensor "one": expected 4398046511104 bytes`,
    ],
    ["a shape beyond numbers", ggufFile([{ ...one, shape: [2 ** 40, 2 ** 40] }]), `tensor "one": its shape [`],
    ["five axes", ggufFile([{ ...one, shape: [1, 1, 1, 2, 3] }]), `tensor "one": expected at most 4 axes, found 5`],
    ["an unknown type", ggufFile([{ ...one, type: 2 }]), "types F32, F16, BF16, Q8_0, Q4_K, Q6_K, found type 2"],
    ["parts of blocks", ggufFile([{ ...one, type: 12 }]), "expected rows of whole blocks of 256 numbers, found 3"],
    ["two tensors of a name", ggufFile([one, one]), `there are two tensors "one"`],
    ["no alignment", ggufFile([one], { "general.alignment": 0 }), "general.alignment: expected an integer from 1 to"],
  ] as const) {
    it.effect(`with ${problem} is refused`, () =>
      Effect.gen(function* () {
        assert.include(yield* message(bytes), expected)
      }),
    )
  }
})
