import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { read } from "../../../src/formats/hdf5/read.ts"

const file = read(readFileSync(new URL("../../fixtures/hdf5/largeChunk.hdf5", import.meta.url)))

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
