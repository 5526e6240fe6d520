import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { encode } from "../../../../src/base/formats/hdf5/Hdf5.ts"
import { read } from "../../../../src/base/formats/hdf5/read.ts"

const file = read(readFileSync(new URL("../../../fixtures/hdf5/largeChunk.hdf5", import.meta.url)))

describe("a compressed chunk", () => {
  it.effect("is unpacked, with its checksum", () =>
    Effect.gen(function* () {
      const { shape, data } = yield* (yield* file).numbers("right")
      assert.deepStrictEqual(shape, [16])
      assert.deepStrictEqual(
        [...data],
        Array.from({ length: 16 }, (_, index) => index),
      )
    }),
  )

  it.effect("is refused if it is larger than its dataset says, before it fills the memory", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip((yield* file).numbers("wrong"))
      assert.strictEqual(message, "wrong: a chunk has more than its 68 bytes")
    }),
  )
})

/** Returns the file with the root of a tree replaced by `levels` nodes above it, each of which lists the next one twice. */
const withTall = (type: number, keyBytes: number, levels: number): Uint8Array => {
  const original = readFileSync(new URL("../../../fixtures/hdf5/largeChunk.hdf5", import.meta.url))
  const root = treesIn(original).find((at) => original[at + 4] === type) ?? -1
  const nodeBytes = 24 + 2 * (keyBytes + 8) + keyBytes
  const file = Buffer.concat([original, Buffer.alloc(levels * nodeBytes)])
  let child = root
  for (let level = 1; level <= levels; level++) {
    const at = original.length + (level - 1) * nodeBytes
    file.write("TREE", at, "latin1")
    file.set([type, level], at + 4)
    file.writeUInt16LE(2, at + 6)
    for (const entry of [0, 1]) file.writeBigUInt64LE(BigInt(child), at + 24 + entry * (keyBytes + 8) + keyBytes)
    child = at
  }
  const before = Buffer.alloc(8)
  before.writeBigUInt64LE(BigInt(root))
  for (let at = original.indexOf(before); at >= 0 && at < original.length; at = file.indexOf(before, at + 8)) {
    if (at + 8 <= original.length) file.writeBigUInt64LE(BigInt(child), at)
  }
  return file
}

const treesIn = (file: Buffer): ReadonlyArray<number> => {
  const found: Array<number> = []
  for (let at = file.indexOf("TREE"); at >= 0; at = file.indexOf("TREE", at + 1)) found.push(at)
  return found
}

describe("a tree whose nodes are listed again and again", () => {
  it.effect("is refused in a group", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(read(withTall(0, 8, 40)))
      assert.strictEqual(message, "the HDF5 file is damaged: it uses the same places again and again")
    }),
  )

  it.effect("is refused in the chunks of a dataset", () =>
    Effect.gen(function* () {
      const tall = yield* read(withTall(1, 24, 40))
      const failures = yield* Effect.all(
        [Effect.flip(tall.numbers("wrong")), Effect.flip(tall.numbers("right"))].map(Effect.result),
      )
      const messages = failures.map((one) => (one._tag === "Success" ? one.success.message : ""))
      assert.include(messages, "the HDF5 file is damaged: it uses the same places again and again")
    }),
  )
})

it.effect(
  "a dataset that is read twice counts once towards the numbers that a file may hold",
  () =>
    Effect.gen(function* () {
      const bytes = readFileSync(new URL("../../../fixtures/hdf5/largeChunk.hdf5", import.meta.url))
      // A dataspace of one axis with 16 numbers, of which the file then says that it has 4.3 million, most of them missing.
      const space = Buffer.from([1, 1, 1, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0])
      for (let at = bytes.indexOf(space); at >= 0; at = bytes.indexOf(space, at + 1))
        bytes.writeUInt32LE(4_300_000, at + 8)
      const opened = yield* read(bytes)
      for (let time = 0; time < 2; time++) {
        const { message } = yield* Effect.flip(opened.numbers("right"))
        assert.strictEqual(message, "right: expected numbers or booleans, found undefined")
      }
    }),
  { tags: "slow" },
)

it.effect("a dataset with fewer bytes than its shape needs is refused, instead of read into other objects", () =>
  Effect.gen(function* () {
    const bytes = Buffer.from(encode({ children: { a: { shape: [4], data: Float64Array.of(1, 2, 3, 4) } } }))
    const shape = bytes.indexOf(Buffer.from([2, 1, 0, 1, 4, 0, 0, 0, 0, 0, 0, 0]))
    bytes.writeUInt32LE(6, shape + 4)
    const { message } = yield* Effect.flip((yield* read(bytes)).numbers("a"))
    assert.strictEqual(message, "a: the shape [6] needs 48 bytes, but the dataset has 32")
    bytes.writeUInt32LE(4, shape + 4)
    assert.deepStrictEqual([...(yield* (yield* read(bytes)).numbers("a")).data], [1, 2, 3, 4])
  }),
)
