import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Path } from "effect"
import { openRunFolder } from "../../../src/trainer/runs/guardedFolder.ts"
import { diskError } from "../../run/store/brokenDisk.ts"
import { makeBadDisk } from "../badDisk.ts"
import { filesIn, temporary } from "../ranks.ts"

/** Opens the folder of a run that a trainer has marked, on a disk that can be broken. */
const marked = Effect.gen(function* () {
  const directory = yield* temporary
  const files = filesIn(directory)
  files.write("run_a/control/token", "run_a 1")
  const { disk, layer } = makeBadDisk()
  const opening = openRunFolder({ id: "run_a", directory: files.at("run_a") }).pipe(
    Effect.provide(Layer.merge(layer, Path.layer)),
  )
  return { files, disk, opening }
})

describe("the folder of a run", () => {
  for (const [code, words] of [
    ["EMFILE", "too many open files"],
    ["EIO", "the device failed to read or write"],
    ["EACCES", "permission denied"],
  ])
    it.effect(`is not said to be deleted if it cannot be read now (${code})`, () =>
      Effect.gen(function* () {
        const { files, disk, opening } = yield* marked
        const folder = yield* opening
        const fail = (operation: string) =>
          operation === "stat" || operation === "readFile" ? diskError(code) : undefined
        disk.before = fail
        const unopened = yield* Effect.flip(opening)
        assert.strictEqual(unopened.message, `cannot look at ${files.at("run_a")}: ${words}`)
        const unwritten = yield* Effect.flip(folder.guarded(folder.tree.write("note.txt", "1")))
        assert.include(unwritten.message, words)
        disk.before = () => undefined
        yield* folder.guarded(folder.tree.write("note.txt", "2"))
        files.remove("run_a")
        assert.match(
          (yield* Effect.flip(folder.guarded(folder.tree.write("note.txt", "3")))).message,
          /was deleted or replaced/,
        )
      }),
    )

  it.effect("is not changed once another trainer has marked it", () =>
    Effect.gen(function* () {
      const { files, opening } = yield* marked
      const { tree } = yield* opening
      const append = yield* Effect.scoped(tree.appending("run.log"))
      yield* tree.append("run.log", "1\n")
      files.write("run_a/control/token", "run_a 2")
      for (const late of [
        append("late\n"),
        tree.append("run.log", "late\n"),
        tree.truncate("run.log", 0),
        tree.remove("run.log"),
        tree.link("latest", "step_1"),
      ])
        assert.match((yield* Effect.flip(late)).message, /or is trained by another process/)
      assert.strictEqual(files.text("run_a/run.log"), "1\n")
    }),
  )
})
