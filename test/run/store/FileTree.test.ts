import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Path, Stream } from "effect"
import { blocksOf } from "../../../src/run/store/blocks.ts"
import { type FileTree, onDisk } from "../../../src/run/store/FileTree.ts"
import { inMemory, treeOf } from "../../../src/run/store/Folder.ts"
import { foldersIn, ObjectStore } from "../../../src/run/store/objects/ObjectStore.ts"
import { brokenDisk } from "./brokenDisk.ts"
import { disk, temporaryDirectory } from "./disk.ts"

const bytes = (...values: ReadonlyArray<number>): Uint8Array => Uint8Array.from(values)

const trees = {
  "on disk": Effect.flatMap(temporaryDirectory, onDisk),
  "in memory": Effect.sync(() => treeOf("root", inMemory(new Map())("root"))),
  "in an object store": Effect.map(ObjectStore, (store) => treeOf("root", foldersIn(store)("root"))).pipe(
    Effect.provide(ObjectStore.layerMemory),
  ),
}

describe("blocks of parts", () => {
  it("hold all bytes in few blocks, also if the parts share a buffer", () => {
    const lengths = [3, 0, 700_000, 400_000, 1 << 20, 5, (1 << 20) + 1, 2, ...Array.from({ length: 100 }, () => 1000)]
    const shared = new Uint8Array(2 << 20)
    const parts = function* () {
      for (const [at, length] of lengths.entries()) yield shared.fill(at).subarray(0, length)
    }
    const expected = lengths.flatMap((length, at) => Array.from({ length }, () => at))
    const blocks = Array.from(blocksOf(parts()), (block) => block.slice())
    assert.deepStrictEqual(
      blocks.map(({ length }) => length),
      [700_003, 400_000, 1 << 20, 5, (1 << 20) + 1, 100_002],
    )
    assert.isTrue(Buffer.concat(blocks).equals(Uint8Array.from(expected)))
    assert.deepStrictEqual([...blocksOf([])], [])
  })
})

for (const [where, make] of Object.entries(trees)) {
  const test = (title: string, body: (tree: FileTree) => Effect.Effect<void, unknown>) =>
    it.effect(title, () => Effect.flatMap(make, body).pipe(Effect.provide(disk)))

  describe(`a tree of files ${where}`, () => {
    test("reads what was written, as bytes and as text", (tree) =>
      Effect.gen(function* () {
        yield* tree.write("a/b/c.bin", bytes(0, 255, 7))
        yield* tree.write("text", "naïve")
        assert.deepEqual([...(yield* tree.read("a/b/c.bin"))], [0, 255, 7])
        assert.strictEqual(yield* tree.readText("text"), "naïve")
        assert.strictEqual(yield* tree.size("text"), 6)
        yield* tree.write("text", "x")
        assert.strictEqual(yield* tree.readText("text"), "x")
      }))

    test("keeps its own copy of what it was given", (tree) =>
      Effect.gen(function* () {
        const given = bytes(1, 2)
        yield* tree.write("written", given)
        yield* tree.append("appended", given)
        yield* tree.writeDirectory("d", { file: given })
        given.fill(9)
        for (const file of ["written", "appended", "d/file"])
          assert.deepEqual([...(yield* tree.read(file))], [1, 2], file)
      }))

    test("appends, cuts, and appends again", (tree) =>
      Effect.gen(function* () {
        yield* tree.append("new/log", "one\n")
        yield* tree.append("new/log", "two\n")
        yield* tree.sync("new/log")
        assert.strictEqual(yield* tree.readText("new/log"), "one\ntwo\n")
        yield* tree.truncate("new/log", 4)
        yield* tree.append("new/log", "2\n")
        assert.strictEqual(yield* tree.readText("new/log"), "one\n2\n")
      }))

    test("appends through a file that stays open as long as its scope, until the very end", (tree) =>
      Effect.gen(function* () {
        const use = Effect.gen(function* () {
          const append = yield* tree.appending("new/log")
          yield* Effect.addFinalizer(() => Effect.orDie(append("last\n")))
          assert.isFalse(yield* tree.exists("new/log"))
          yield* append("one\n")
          yield* append(bytes(50, 10))
        })
        yield* Effect.scoped(use)
        assert.strictEqual(yield* tree.readText("new/log"), "one\n2\nlast\n")
      }))

    test("lists names in order, and none where there is no folder", (tree) =>
      Effect.gen(function* () {
        for (const path of ["d/b", "d/a/x", "d/c", "e"]) yield* tree.write(path, "")
        assert.deepEqual(yield* tree.list("d"), ["a", "b", "c"])
        assert.deepEqual(yield* tree.list("nowhere"), [])
        assert.isTrue(yield* tree.exists("d/a"))
        assert.isFalse(yield* tree.exists("d/z"))
      }))

    test("removes files, folders, and nothing", (tree) =>
      Effect.gen(function* () {
        for (const path of ["d/a", "d/b/c", "d/bc", "e"]) yield* tree.write(path, "")
        for (const path of ["d/a", "d/b", "nothing"]) yield* tree.remove(path)
        assert.deepEqual(yield* tree.list("d"), ["bc"])
        assert.isTrue(yield* tree.exists("e"))
      }))

    test("replaces a folder whole", (tree) =>
      Effect.gen(function* () {
        yield* tree.writeDirectory("checkpoints/one", { a: bytes(1), b: bytes(2) })
        yield* tree.writeDirectory("checkpoints/one", { b: bytes(3) })
        assert.deepEqual(yield* tree.list("checkpoints"), ["one"])
        assert.deepEqual(yield* tree.list("checkpoints/one"), ["b"])
        assert.deepEqual([...(yield* tree.read("checkpoints/one/b"))], [3])
      }))

    test("writes a folder with folders in it", (tree) =>
      Effect.gen(function* () {
        yield* tree.writeDirectory("d", { "a/b/c": bytes(1), "a/d": bytes(2), e: bytes(3) }, () => ({ f: bytes(4) }))
        assert.deepEqual(
          [yield* tree.list("d"), yield* tree.list("d/a")],
          [
            ["a", "e", "f"],
            ["b", "d"],
          ],
        )
        for (const [name, byte] of Object.entries({ "a/b/c": 1, "a/d": 2, e: 3, f: 4 })) {
          assert.deepEqual([...(yield* tree.read(`d/${name}`))], [byte])
        }
      }))

    test("points a link to one thing, then to another", (tree) =>
      Effect.gen(function* () {
        assert.isUndefined(yield* tree.target("d/latest"))
        for (const name of ["one", "two"]) {
          yield* tree.writeDirectory(`d/${name}`, { file: bytes(1) })
          yield* tree.link("d/latest", name)
          assert.strictEqual(yield* tree.target("d/latest"), name)
        }
      }))

    test("says which file is missing", (tree) =>
      Effect.gen(function* () {
        for (const failing of [tree.read("a/b"), tree.size("a/b"), tree.truncate("a/b", 0), tree.sync("a/b")]) {
          const error = yield* Effect.flip(failing)
          assert.strictEqual(error.message, `cannot ${error.operation} ${tree.root}/a/b: no such file or directory`)
        }
      }))
  })
}

describe("a tree on disk whose writer was stopped", () => {
  const test = (title: string, body: (tree: FileTree, fs: FileSystem.FileSystem) => Effect.Effect<void, unknown>) =>
    it.effect(title, () =>
      Effect.gen(function* () {
        yield* body(yield* Effect.flatMap(temporaryDirectory, onDisk), yield* FileSystem.FileSystem)
      }).pipe(Effect.provide(disk)),
    )

  test("takes back the old folder where the new one was not there yet", (tree, fs) =>
    Effect.gen(function* () {
      yield* tree.write("c/.one.old/file", "old")
      yield* tree.write("c/.one.tmp/file", "half")
      yield* fs.symlink("nowhere", `${tree.root}/c/.latest.tmp`)
      yield* tree.repair("c")
      assert.deepEqual(yield* tree.list("c"), ["one"])
      assert.strictEqual(yield* tree.readText("c/one/file"), "old")
    }))

  test("drops the old folder where the new one is there", (tree) =>
    Effect.gen(function* () {
      yield* tree.write("c/.one.old/file", "old")
      yield* tree.write("c/one/file", "new")
      yield* tree.repair("c")
      assert.deepEqual(yield* tree.list("c"), ["one"])
      assert.strictEqual(yield* tree.readText("c/one/file"), "new")
    }))

  test("is not troubled by leftovers", (tree) =>
    Effect.gen(function* () {
      yield* tree.write("c/.one.tmp/file", "half")
      yield* tree.write("c/.text.tmp", "half")
      yield* tree.writeDirectory("c/one", { other: bytes(1) })
      yield* tree.write("c/text", "whole")
      assert.deepEqual(yield* tree.list("c"), ["one", "text"])
      assert.deepEqual(yield* tree.list("c/one"), ["other"])
      yield* tree.repair("nowhere")
    }))
})

describe("what is no file of a tree", () => {
  it.effect("is refused where it would be read, and never waited for", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      if (!(yield* fs.exists("/dev/zero"))) return
      const tree = yield* onDisk(yield* temporaryDirectory, { followsLinks: true })
      yield* fs.symlink("/dev/zero", `${tree.root}/weights`)
      yield* fs.makeDirectory(`${tree.root}/folder`)
      const device = `cannot read ${tree.root}/weights: expected a regular file, found a device`
      const failing = [tree.read("weights"), tree.readText("weights"), Stream.runDrain(tree.stream("weights"))]
      for (const reading of failing) assert.strictEqual((yield* Effect.flip(reading)).message, device)
      const folder = `cannot read ${tree.root}/folder: expected a regular file, found a directory`
      assert.strictEqual((yield* Effect.flip(tree.read("folder"))).message, folder)
    }).pipe(Effect.provide(disk)),
  )

  it.effect("is a folder that can't be made", () =>
    Effect.gen(function* () {
      if (!(yield* (yield* FileSystem.FileSystem).exists("/proc/self"))) return
      const tree = yield* onDisk("/proc/nope")
      const message = "no folder can be made at /proc/nope"
      assert.strictEqual((yield* Effect.flip(tree.write("a", "b"))).message, `cannot write /proc/nope/a: ${message}`)
      const folder = yield* Effect.flip(tree.writeDirectory("a/b", {}))
      assert.strictEqual(folder.message, `cannot write /proc/nope/a/b: ${message}`)
    }).pipe(Effect.provide(disk)),
  )
})

describe("a disk that fails", () => {
  /** Does it with the disk breaking at its first change, its second … until it gets through. */
  const breakingEverywhere = (code: string, doing: (tree: FileTree) => Effect.Effect<void, unknown>) =>
    Effect.gen(function* () {
      const outcomes: Array<{ readonly tree: FileTree; readonly error: unknown }> = []
      for (let at = 1; ; at++) {
        const root = yield* temporaryDirectory
        const tree = yield* onDisk(root)
        yield* tree.write("file", "before")
        const { layer, changes } = brokenDisk({ at, code })
        const broken = yield* onDisk(root).pipe(Effect.provide(Layer.merge(layer, Path.layer)))
        const exit = yield* Effect.result(doing(broken))
        if (exit._tag === "Success") {
          assert.isBelow(changes.count, at)
          return outcomes
        }
        outcomes.push({ tree, error: exit.failure })
      }
    })

  for (const durable of [true, false]) {
    const how = durable ? "flushed to disk" : "in the system's hands"
    it.effect(`leaves a file as it was or as it should be, ${how}, and says what is wrong`, () =>
      Effect.gen(function* () {
        const write = (tree: FileTree) => tree.write("file", "after, and longer", { durable })
        const outcomes = yield* breakingEverywhere("ENOSPC", write)
        assert.isAtLeast(outcomes.length, durable ? 4 : 2)
        for (const { tree, error } of outcomes) {
          assert.include(["before", "after, and longer"], yield* tree.readText("file"))
          assert.propertyVal(error, "message", `cannot write ${tree.root}/file: no space left on device`)
        }
      }).pipe(Effect.provide(disk)),
    )
  }

  it.effect("leaves half a line at the end at worst when appending", () =>
    Effect.gen(function* () {
      const outcomes = yield* breakingEverywhere("EROFS", (tree) => tree.append("file", " and after"))
      for (const { tree, error } of outcomes) {
        assert.match(yield* tree.readText("file"), /^before/)
        assert.propertyVal(error, "message", `cannot append to ${tree.root}/file: read-only file system`)
      }
    }).pipe(Effect.provide(disk)),
  )
})
