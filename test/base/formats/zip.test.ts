import { zstdCompressSync } from "node:zlib"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { crc32 } from "../../../src/base/formats/crc.ts"
import { type ZipEntry, zipEntries } from "../../../src/base/formats/zip/directory.ts"
import { unzip } from "../../../src/base/formats/zip/unzip.ts"
import { ZipWriter } from "../../../src/base/formats/zip/ZipWriter.ts"
import { unzstd } from "../../../src/base/formats/zip/zstd-node.ts"

const bytesOf = (text: string) => new TextEncoder().encode(text)
const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
const run = Effect.runPromise
const problem = (entry: ZipEntry, most = 1e6) =>
  run(Effect.flip(unzip(entry, { most, unzstd }))).then(({ message }) => message)

const archive = (files: Readonly<Record<string, string>>) =>
  run(
    Effect.gen(function* () {
      const zip = new ZipWriter()
      for (const [name, text] of Object.entries(files)) yield* zip.add(name, bytesOf(text))
      return zip.finish()
    }),
  )

const files = { "a.json": "{}", "samples/ä/1.json": "x".repeat(10_000), empty: "" }

describe("zip archives", () => {
  it("are read as they were written, compressed, and with equal bytes each time", async () => {
    const bytes = await archive(files)
    assert.isBelow(bytes.length, 600)
    assert.deepEqual(bytes, await archive(files))
    const entries = zipEntries(bytes)
    const texts = await Promise.all(
      entries.map(async (entry) => [entry.name, textOf(await run(unzip(entry, { most: 1e6 })))]),
    )
    assert.deepEqual(Object.fromEntries(texts), files)
  })

  it("unpack no more than allowed, whatever size they state", async () => {
    const [, large] = zipEntries(await archive(files))
    assert.match(await problem(large, 100), /^"samples\/ä\/1\.json" has 10000 bytes when unpacked, too many/)
    // The stated size is a lie.
    assert.match(await problem({ ...large, size: 10 }, 100), /too many/)
    assert.match(await problem({ ...large, size: 10 }), /has 10000 bytes, expected 10$/)
  })

  it("are refused if damaged, or compressed by an unknown method", async () => {
    const [first, second] = zipEntries(await archive(files))
    assert.match(await problem({ ...first, crc: 1 }), /^"a\.json" does not match its CRC-32$/)
    assert.match(await problem({ ...second, stored: bytesOf("no deflate at all") }), /is damaged$/)
    assert.match(await problem({ ...first, method: 12 }), /compressed by the unknown method 12$/)
  })

  it("can be compressed by Zstandard, within the same limits", async () => {
    const contents = bytesOf("y".repeat(5000))
    const stored = new Uint8Array(zstdCompressSync(contents))
    const entry: ZipEntry = { name: "z", method: 93, size: 5000, crc: crc32(contents), stored, offset: 0 }
    assert.deepEqual(await run(unzip(entry, { most: 1e6, unzstd })), contents)
    assert.match(await problem({ ...entry, size: 10 }, 100), /is damaged|too many/)
    const without = await run(Effect.flip(unzip(entry, { most: 1e6 })))
    assert.match(without.message, /unknown method 93/)
  })

  it("have entries apart from each other", async () => {
    const bytes = await archive({ a: "aaaa", b: "bbbb" })
    // Both entries of the directory name the same contents.
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    const directory = view.getUint32(bytes.length - 6, true)
    view.setUint32(directory + 20, bytes.length - 1, true)
    assert.throws(() => zipEntries(bytes), /with the other entries, that is more than the archive has|ends before/)
  })
})
