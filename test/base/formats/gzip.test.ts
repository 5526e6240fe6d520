import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { gunzip, mostUnpacked } from "../../../src/base/formats/gzip.ts"

describe("a gzip file", () => {
  it.effect("is unpacked up to a limit", () =>
    Effect.gen(function* () {
      const packed = new Uint8Array(gzipSync(new Uint8Array(1_000_000)))
      assert.lengthOf(yield* gunzip(packed, 1_000_000), 1_000_000)
      const { message } = yield* Effect.flip(gunzip(packed, 999_999))
      assert.strictEqual(
        message,
        `the gzip file has more than 999999 bytes when unpacked, too many for its ${packed.length} bytes`,
      )
      const cut = yield* Effect.flip(gunzip(packed.subarray(0, 100), 1_000_000))
      assert.strictEqual(cut.message, "the gzip file is damaged")
    }),
  )

  it("may be a hundred times as large, and 64 MiB in any case", () => {
    assert.strictEqual(mostUnpacked(100, 2 ** 32), 64 * 2 ** 20)
    assert.strictEqual(mostUnpacked(3_000_000, 2 ** 32), 300_000_000)
    assert.strictEqual(mostUnpacked(2 ** 30, 2 ** 32), 2 ** 32)
  })
})
