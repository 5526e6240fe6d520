import { NodeServices } from "@effect/platform-node"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, FileSystem, Path } from "effect"
import { gzipSync } from "node:zlib"
import {
  checkFile,
  FileError,
  makeFolder,
  readBytes,
  readRunText,
  readText,
  refusal,
  shownPath,
  textOf,
} from "../../../src/base/files/files.ts"
import { readPartSync, readTextSync } from "../../../src/base/files/files-node.ts"

const messageOf = <A, R>(effect: Effect.Effect<A, { readonly message: string }, R>) =>
  Effect.map(Effect.flip(effect), ({ message }) => message)

const asFileError = (error: unknown): FileError =>
  error instanceof FileError ? error : new FileError({ path: "", missing: false, message: String(error) })

layer(NodeServices.layer)("files", (it) => {
  it.effect("a file is read as a whole within its limit", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      const file = `${folder}/a.txt`
      yield* fs.writeFileString(file, "\uFEFFéa")
      assert.strictEqual(yield* readText(file, 100), "éa", "the mark at its begin isn't part of the text")
      assert.strictEqual((yield* readBytes(file, 6)).length, 6)
      assert.strictEqual(yield* messageOf(readBytes(file, 5)), "expected a file of at most 0.0 MiB, found 0.0 MiB")
    }),
  )

  it.effect("a file that is too large for one read is read in parts", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      const file = `${folder}/a`
      const bytes = Uint8Array.from({ length: 1000 }, (_, at) => at)
      yield* fs.writeFile(file, bytes)
      assert.deepStrictEqual(yield* readBytes(file, 1000, 300), bytes)
      assert.strictEqual(
        yield* messageOf(readBytes(file, 999, 300)),
        "expected a file of at most 0.0 MiB, found 0.0 MiB",
      )
    }),
  )

  it.effect("a text that a run writes is read in spite of a torn end, another format is refused", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      const file = `${folder}/a`
      const readers = [
        () => readRunText(file, 1000),
        () => Effect.try({ try: () => readTextSync(file, 1000), catch: asFileError }),
      ]
      for (const read of readers) {
        yield* fs.writeFile(file, Buffer.from('\uFEFF{}\n"é').subarray(0, -1))
        assert.strictEqual(yield* read(), '{}\n"\uFFFD')
        yield* fs.writeFile(file, gzipSync("{}"))
        assert.strictEqual(yield* messageOf(read()), "expected text in UTF-8, found a gzip file; unpack it first")
        yield* fs.writeFile(file, Buffer.from("\uFEFF{}", "utf16le"))
        assert.strictEqual(yield* messageOf(read()), "expected text in UTF-8, found UTF-16; save it as UTF-8")
      }
    }),
  )

  it.effect("a part is read from either end, and what isn't a regular file of the expected size is refused", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      const textOfPart = (path: string, from: number, most: number) =>
        Effect.try({ try: () => new TextDecoder().decode(readPartSync(path, from, most)), catch: asFileError })
      yield* fs.writeFileString(`${folder}/a`, "abcdef")
      assert.strictEqual(yield* textOfPart(`${folder}/a`, 1, 3), "bcd")
      assert.strictEqual(yield* textOfPart(`${folder}/a`, -2, 100), "ef")
      assert.strictEqual(yield* textOfPart(`${folder}/a`, -100, 2), "ab")
      assert.strictEqual(yield* textOfPart(`${folder}/a`, 100, 2), "")
      const texts = (most: number) => Effect.try({ try: () => readTextSync(`${folder}/a`, most), catch: asFileError })
      assert.strictEqual(yield* texts(6), "abcdef")
      assert.include(yield* messageOf(texts(5)), "expected a file of at most")
      assert.strictEqual(yield* messageOf(textOfPart(folder, 0, 1)), "expected a regular file, found a directory")
      assert.strictEqual(yield* messageOf(textOfPart(`${folder}/none`, 0, 1)), "there is no such file")
    }),
  )

  it.effect("what isn't a regular file is refused without being opened", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      assert.strictEqual(yield* messageOf(readText(folder, 100)), "expected a regular file, found a directory")
      assert.strictEqual(yield* messageOf(readText(`${folder}/none`, 100)), "there is no such file")
      if (yield* fs.exists("/dev/zero")) {
        assert.strictEqual(yield* messageOf(checkFile("/dev/zero", 100)), "expected a regular file, found a device")
      }
    }),
  )

  it.effect("folders are made with those above them, and may be there", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      yield* makeFolder(`${folder}/a/b/c`)
      yield* makeFolder(`${folder}/a/b/c`)
      assert.isTrue(yield* fs.exists(`${folder}/a/b/c`))
      yield* fs.writeFileString(`${folder}/file`, "")
      assert.include(yield* messageOf(makeFolder(`${folder}/file/below`)), "a part of the path is not a directory")
    }),
  )

  it.effect("a folder that can't be made fails, where Node's own recursive mkdir never returns", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      if (!(yield* fs.exists("/proc/self"))) return
      for (const [folder, level] of [
        ["/proc/nope", "/proc/nope"],
        ["/proc/nope/below", "/proc/nope"],
        ["/proc/self/fd/x", "/proc/self/fd/x"],
      ]) {
        assert.strictEqual(yield* messageOf(makeFolder(folder)), `no folder can be made at ${level}`)
      }
      assert.strictEqual((yield* Path.Path).sep, "/")
    }),
  )
})

describe("a file that must not be read", () => {
  it("is refused by its kind and its size", () => {
    assert.strictEqual(refusal("FIFO", 0, 10), "expected a regular file, found a pipe")
    assert.strictEqual(refusal("Socket", 0, 10), "expected a regular file, found a socket")
    assert.strictEqual(refusal("File", 3 * 2 ** 20, 2 ** 20), "expected a file of at most 1 MiB, found 3 MiB")
    assert.strictEqual(refusal("File", 10, 10), undefined)
  })

  it("is described by its first bytes if it isn't text", () => {
    const problem = (bytes: Uint8Array): string => {
      const found = textOf(bytes)
      return "problem" in found ? found.problem : found.text
    }
    const expected = (what: string): string => `expected text in UTF-8, found ${what}`
    assert.strictEqual(problem(gzipSync("a: 1")), expected("a gzip file; unpack it first"))
    assert.strictEqual(problem(Buffer.from("\uFEFFa: 1", "utf16le")), expected("UTF-16; save it as UTF-8"))
    assert.strictEqual(problem(Buffer.from("a: 1", "utf16le")), expected("UTF-16; save it as UTF-8"))
    assert.strictEqual(problem(Buffer.from([0x61, 0xff])), expected("other bytes"))
    assert.strictEqual(problem(Buffer.from([0x61, 0x62, 0])), expected("other bytes"))
    assert.strictEqual(problem(Buffer.from("a: é")), "a: é")
  })

  it("is shown by both ends of a path that is very long", () => {
    assert.strictEqual(shownPath("a/b"), "a/b")
    assert.isBelow(shownPath("x".repeat(5000)).length, 300)
  })
})
