import { brotliCompressSync, gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { parquetWriteBuffer } from "hyparquet-writer"
import { utf8 } from "../../../../src/base/text/utf8.ts"
import { joined } from "../../../../src/base/text/bytes.ts"
import { linesOf } from "../../../../src/agents/task/hub/rows.ts"

const texts = Array.from({ length: 100 }, (_, index) => `question ${index}`)

/** Writes a file whose pages are packed by a codec; `pack` may write another page than the one that is claimed. */
const written = (codec: "GZIP" | "BROTLI", pack: (page: Uint8Array) => Uint8Array): Uint8Array =>
  new Uint8Array(
    parquetWriteBuffer({
      columnData: [{ name: "text", data: texts, type: "STRING" }],
      codec,
      compressors: { [codec]: pack },
    }),
  )

const read = (bytes: Uint8Array) =>
  Effect.map(Stream.runCollect(linesOf("open/x", "train.parquet", bytes)), (chunks) => utf8.decode(joined(chunks)))

const codecs = [
  ["GZIP", gzipSync],
  ["BROTLI", brotliCompressSync],
] as const

/** Brotli needs a newer Node than the oldest one that the library works with. */
const hasBrotli = Number(process.versions.node.split(".")[0]) >= 24

/** Writes a file whose texts begin with the text before them. */
const prefixed = (data: ReadonlyArray<string>): Uint8Array =>
  new Uint8Array(
    parquetWriteBuffer({
      columnData: [{ name: "text", data: [...data], type: "STRING", encoding: "DELTA_BYTE_ARRAY" }],
    }),
  )

describe("Parquet", () => {
  it.effect("reads texts that are written by what they share with the text before", () =>
    Effect.gen(function* () {
      const lines = (yield* read(prefixed(texts))).trimEnd().split("\n")
      assert.deepStrictEqual(
        lines,
        texts.map((text) => JSON.stringify({ text })),
      )
    }),
  )

  it.effect(
    "refuses a page whose texts repeat a long one so often that they would fill the memory",
    () =>
      Effect.gen(function* () {
        const long = "x".repeat(20_000)
        const bytes = prefixed(Array.from({ length: 5000 }, () => long))
        const { message } = yield* Effect.flip(read(bytes))
        assert.match(
          message,
          /^open\/x: the Parquet file is damaged: it claims to hold more than \d+ bytes of unpacked/,
        )
      }),
    { tags: "slow" },
  )

  for (const [codec, pack] of codecs) {
    it.effect.skipIf(codec === "BROTLI" && !hasBrotli)(`reads pages that are packed by ${codec}`, () =>
      Effect.gen(function* () {
        const lines = (yield* read(written(codec, (page) => pack(page)))).trimEnd().split("\n")
        assert.deepStrictEqual(
          lines,
          texts.map((text) => JSON.stringify({ text })),
        )
      }),
    )

    it.effect(`refuses a page of ${codec} that unpacks to more than it claims`, () =>
      Effect.gen(function* () {
        const bytes = written(codec, (page) => pack(joined([page, new Uint8Array(4 * 2 ** 20)])))
        const { message } = yield* Effect.flip(read(bytes))
        const found = codec === "GZIP" || hasBrotli ? "expected a page of \\d+ bytes when unpacked, found more" : ".+"
        assert.match(message, new RegExp(`^open/x: the Parquet file is damaged: ${found}$`))
      }),
    )
  }
})
