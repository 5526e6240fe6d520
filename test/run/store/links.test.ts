import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Stream } from "effect"
import { type FileTree, onDisk } from "../../../src/run/store/FileTree.ts"
import type { RunStoreError } from "../../../src/run/store/RunStore.ts"
import { disk, openRun, temporaryDirectory } from "./disk.ts"

/** Makes a folder of the user with the files `file` and `.notes.tmp`, and a run whose folder has links to them. */
const linkedRun = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* temporaryDirectory
  const users = `${folder}/users`
  yield* fs.makeDirectory(`${users}/step_1`, { recursive: true })
  for (const name of ["file", ".notes.tmp", ".bashrc.old", "step_1/weights"])
    yield* fs.writeFileString(`${users}/${name}`, "the user's")
  const run = `${folder}/run`
  yield* fs.makeDirectory(run)
  yield* fs.symlink(`${users}/file`, `${run}/run.log`)
  yield* fs.symlink(users, `${run}/checkpoints`)
  yield* fs.symlink(`${users}/missing`, `${run}/scores`)
  return { fs, folder, users, run }
})

/** Fails if one of the user's files was changed. */
const checkUsers = Effect.fnUntraced(function* (fs: FileSystem.FileSystem, users: string) {
  const names = yield* fs.readDirectory(users, { recursive: true })
  assert.deepEqual(names.toSorted(), [".bashrc.old", ".notes.tmp", "file", "step_1", "step_1/weights"])
  for (const name of names.filter((one) => one !== "step_1"))
    assert.strictEqual(yield* fs.readFileString(`${users}/${name}`), "the user's")
})

describe("a link in the folder of a run", () => {
  const operations: Readonly<Record<string, (tree: FileTree) => Effect.Effect<unknown, RunStoreError>>> = {
    "append to": (tree) => tree.append("run.log", "x"),
    "append below": (tree) => tree.append("checkpoints/file", "x"),
    "append below a missing folder": (tree) => tree.append("scores/train/scores.jsonl", "x"),
    "append many times": (tree) => Effect.scoped(Effect.flatMap(tree.appending("run.log"), (append) => append("x"))),
    cut: (tree) => tree.truncate("run.log", 0),
    read: (tree) => tree.read("run.log"),
    "read text": (tree) => tree.readText("checkpoints/step_1/weights"),
    "read parts": (tree) => Stream.runDrain(tree.stream("run.log")),
    list: (tree) => tree.list("checkpoints"),
    write: (tree) => tree.write("checkpoints/file", "x"),
    "write without a flush": (tree) => tree.write("scores/new", "x", { durable: false }),
    remove: (tree) => tree.remove("checkpoints/step_1"),
    "write a folder": (tree) => tree.writeDirectory("checkpoints/step_1", { weights: Uint8Array.of(1) }),
    link: (tree) => tree.link("checkpoints/latest", "step_1"),
    repair: (tree) => tree.repair("checkpoints"),
  }
  for (const [name, operation] of Object.entries(operations)) {
    it.effect(`is not followed to ${name}`, () =>
      Effect.gen(function* () {
        const { fs, users, run } = yield* linkedRun
        const error = yield* Effect.flip(operation(yield* onDisk(run)))
        assert.match(
          error.message,
          /\/run\/(run\.log|checkpoints|scores) is a link, .*: remove the link, or replace it/,
        )
        yield* checkUsers(fs, users)
      }).pipe(Effect.provide(disk)),
    )
  }

  it.effect("is not followed if it has the name of a temporary file", () =>
    Effect.gen(function* () {
      const { fs, users, run } = yield* linkedRun
      for (const name of [".metrics.json.tmp", ".text.tmp", ".folder.tmp"])
        yield* fs.symlink(`${users}/file`, `${run}/${name}`)
      const tree = yield* onDisk(run)
      yield* tree.write("metrics.json", "{}")
      yield* tree.write("text", "{}", { durable: false })
      yield* tree.writeDirectory("folder", { file: Uint8Array.of(1) })
      yield* checkUsers(fs, users)
      assert.strictEqual(yield* tree.readText("metrics.json"), "{}")
    }).pipe(Effect.provide(disk)),
  )

  it.effect("is replaced or removed itself, if an operation replaces or removes the file", () =>
    Effect.gen(function* () {
      const { fs, users, run } = yield* linkedRun
      const tree = yield* onDisk(run)
      yield* tree.write("run.log", "the run's")
      yield* tree.remove("checkpoints")
      yield* checkUsers(fs, users)
      assert.strictEqual(yield* tree.readText("run.log"), "the run's")
      assert.isFalse(yield* tree.exists("checkpoints"))
    }).pipe(Effect.provide(disk)),
  )
})

describe("the folder of a run to resume", () => {
  /** A run with a config and a checkpoint to which `latest` points. */
  const run = Effect.gen(function* () {
    const resultsDir = yield* temporaryDirectory
    const files = yield* openRun({ resultsDir })
    yield* files.write("config.yaml", "seed: 7\n")
    yield* files.write("checkpoints/step_000000000000064/manifest.json", "{}")
    yield* files.link("checkpoints/latest", "step_000000000000064")
    return { resultsDir, files, fs: yield* FileSystem.FileSystem }
  })

  it.effect("may have the links of its checkpoints, and may be reached by links", () =>
    Effect.gen(function* () {
      const { resultsDir, files, fs } = yield* run
      // A killed process may leave a link under a temporary name.
      yield* fs.symlink("step_000000000000064", `${files.directory}/checkpoints/.latest.3.tmp`)
      const linked = `${yield* temporaryDirectory}/results`
      yield* fs.symlink(resultsDir, linked)
      const resume = files.directory.replace(resultsDir, linked)
      const resumed = yield* openRun({ resultsDir: linked, resume })
      yield* resumed.append("run.log", "resumed")
      yield* resumed.repair("checkpoints")
      assert.strictEqual(yield* files.readText("run.log"), "resumed")
      assert.strictEqual(yield* resumed.target("checkpoints/latest"), "step_000000000000064")
    }).pipe(Effect.provide(disk)),
  )

  it.effect("is refused if it has other links, before anything in it is changed", () =>
    Effect.gen(function* () {
      const { resultsDir, files, fs } = yield* run
      yield* files.write(".metrics.json.tmp", "half")
      const links = {
        "scores/train": "/nowhere",
        "run.log": "config.yaml",
        "steps/000000000000064/latest": "../../config.yaml",
        "code/latest": "..",
      }
      for (const [link, target] of Object.entries(links)) {
        const path = `${files.directory}/${link}`
        yield* fs.makeDirectory(path.slice(0, path.lastIndexOf("/")), { recursive: true })
        yield* fs.symlink(target, path)
        const error = yield* Effect.flip(openRun({ resultsDir, resume: files.directory }))
        assert.include(error.message, `cannot resume ${files.directory}: ${path} is a link, `)
        assert.include(error.message, "remove the link")
        yield* fs.remove(path)
      }
      assert.isTrue(yield* files.exists(".metrics.json.tmp"))
    }).pipe(Effect.provide(disk)),
  )
})
