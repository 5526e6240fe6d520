import { writeFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, FileSystem, Scope } from "effect"
import { fenced, takeFence } from "../../../src/run/store/fence.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { disk, moment, temporaryDirectory } from "./disk.ts"

const run = { name: "n", population: { environment: "e", algorithm: "a" }, seed: 1 }

/** Opens a run as a process would that takes every other for dead, and leaves it open. */
const opened = Effect.fnUntraced(function* (resultsDir: string, name: string, resume?: string) {
  const owner = { name, isAlive: () => Effect.succeed(false) }
  const layer = RunStore.layerFileSystem({
    resultsDir,
    time: moment,
    commit: "0123abc",
    owner,
    ...(resume === undefined ? {} : { resume }),
  })
  const scope = yield* Scope.make()
  const files = yield* Effect.flatMap(RunStore, (store) => store.open(run)).pipe(
    Scope.provide(scope),
    Effect.provide(layer),
  )
  return { files, close: Scope.close(scope, Exit.void) }
})

describe("a run that a second process takes over while the first one lives", () => {
  it.effect("refuses every write of the first one from then on, and none of the second", () =>
    Effect.gen(function* () {
      const resultsDir = yield* temporaryDirectory
      const { files: first } = yield* opened(resultsDir, "process 1")
      yield* first.write("config.yaml", "seed: 1\n")
      yield* first.append("scores/train/scores.jsonl", "{}\n")
      const append = yield* Effect.scoped(first.appending("run.log"))
      yield* first.append("run.log", "1\n")
      const { files: second } = yield* opened(resultsDir, "process 2", first.directory)
      const writes = {
        write: first.write("return.json", "[]"),
        append: first.append("scores/train/scores.jsonl", "late\n"),
        appending: append("late\n"),
        truncate: first.truncate("run.log", 0),
        remove: first.remove("config.yaml"),
        checkpoint: first.writeDirectory("checkpoints/step_1", { "weights.bin": new Uint8Array(4) }),
        link: first.link("latest", "step_1"),
        cutBack: first.cutBack({ sizes: {} }),
      }
      for (const [name, write] of Object.entries(writes)) {
        const error = yield* Effect.flip(write)
        assert.strictEqual(error._tag, "RunStoreError", name)
        assert.strictEqual(
          error.message,
          `${first.directory}: process 2, with lease 2, has taken this run over from lease 1; what this process has not written yet is dropped`,
          name,
        )
      }
      assert.strictEqual(yield* second.readText("config.yaml"), "seed: 1\n")
      assert.strictEqual(yield* second.readText("run.log"), "1\n")
      assert.strictEqual(yield* second.readText("scores/train/scores.jsonl"), "{}\n")
      assert.deepStrictEqual(yield* second.list("checkpoints"), [])
      yield* second.write("return.json", "[]")
      yield* second.append("run.log", "2\n")
      assert.strictEqual(yield* second.readText("run.log"), "1\n2\n")
    }).pipe(Effect.provide(disk)),
  )

  it.effect("also if both are the same process, which was told twice to train it", () =>
    Effect.gen(function* () {
      const resultsDir = yield* temporaryDirectory
      const { files: first } = yield* opened(resultsDir, "process 1")
      yield* first.write("config.yaml", "")
      const { files: second } = yield* opened(resultsDir, "process 1", first.directory)
      assert.match((yield* Effect.flip(first.write("metrics.json", "{}"))).message, /taken this run over from lease 1/)
      yield* second.write("metrics.json", "{}")
    }).pipe(Effect.provide(disk)),
  )

  it.effect("removes what killed processes were writing, wherever that is, and nothing else", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const fs = yield* FileSystem.FileSystem
      yield* takeFence(directory, "process 1")
      const calls = `${directory}/llm_calls/train/actions`
      yield* fs.makeDirectory(`${directory}/checkpoints/.step_1.1.tmp/lora`, { recursive: true })
      yield* fs.makeDirectory(calls, { recursive: true })
      const leftovers = [`${calls}/.call_00.json.1.tmp`, `${directory}/checkpoints/.step_1.1.tmp/lora/a.bin`]
      const others = [`${calls}/call_00.json`, `${calls}/.call_01.json.7.tmp`, `${calls}/.of-a-user.tmp`]
      for (const file of [...leftovers, ...others]) yield* fs.writeFileString(file, "{}")
      const second = yield* takeFence(directory, "process 2")
      yield* fenced(directory, second)
      for (const file of leftovers) assert.isFalse(yield* fs.exists(file), file)
      for (const file of others) assert.isTrue(yield* fs.exists(file), file)
      assert.deepStrictEqual(yield* fs.readDirectory(`${directory}/checkpoints`), [])
    }).pipe(Effect.provide(disk)),
  )

  it.effect(
    "removes nothing of other runs, neither behind a link nor in a folder of theirs, and walks in no circle",
    () =>
      Effect.gen(function* () {
        const directory = yield* temporaryDirectory
        const elsewhere = yield* temporaryDirectory
        const fs = yield* FileSystem.FileSystem
        yield* takeFence(directory, "process 1")
        yield* fs.makeDirectory(`${directory}/inner`)
        yield* takeFence(`${directory}/inner`, "process 3")
        yield* fs.symlink(elsewhere, `${directory}/checkpoints`)
        for (const name of ["up", "loop"]) yield* fs.symlink(directory, `${directory}/${name}`)
        const files = [`${elsewhere}/.step_5.1.tmp`, `${directory}/inner/.return.json.1.tmp`]
        for (const file of files) yield* fs.writeFileString(file, "{}")
        yield* fenced(directory, yield* takeFence(directory, "process 2"))
        for (const file of files) assert.isTrue(yield* fs.exists(file), file)
      }).pipe(Effect.provide(disk)),
  )

  it.effect("is looked for once by changes that begin together, and by each that follows", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const fs = yield* FileSystem.FileSystem
      let reads = 0
      const counting: FileSystem.FileSystem = {
        ...fs,
        readFile: (path) => {
          if (path.endsWith("run.lease")) reads++
          return fs.readFile(path)
        },
      }
      const fence = yield* Effect.provideService(takeFence(directory, "process 1"), FileSystem.FileSystem, counting)
      const tree = yield* fenced(directory, fence)
      const append = (name: string) => tree.append(name, "1\n")
      reads = 0
      yield* Effect.forEach(["a.log", "b.log", "c.log"], append, { concurrency: "unbounded" })
      assert.strictEqual(reads, 1)
      yield* Effect.forEach(["a.log", "b.log", "c.log"], append)
      assert.strictEqual(reads, 4)
      yield* takeFence(directory, "process 2")
      yield* Effect.flip(Effect.forEach(["a.log", "b.log"], append, { concurrency: "unbounded" }))
      assert.strictEqual(yield* tree.readText("a.log"), "1\n1\n")
      yield* Effect.flip(tree.link("latest", "a.log"))
      const temporary = (yield* fs.readDirectory(directory)).filter((name) => name.endsWith(".tmp"))
      assert.deepStrictEqual(temporary, [])
    }).pipe(Effect.provide(disk)),
  )

  it.effect("stops a checkpoint that the first one had begun to write", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const first = yield* takeFence(directory, "process 1")
      const tree = yield* fenced(directory, first)
      yield* tree.writeDirectory("checkpoints/step_1", { "a.bin": new Uint8Array(1) })
      const fs = yield* FileSystem.FileSystem
      const takeover = { number: 9, holder: "process 2", token: "another" }
      const during = tree.writeDirectory("checkpoints/step_2", { "a.bin": new Uint8Array(1) }, () => {
        writeFileSync(`${directory}/run.lease`, JSON.stringify(takeover))
        return {}
      })
      assert.match((yield* Effect.flip(during)).message, /process 2, with lease 9, has taken this run over/)
      assert.isFalse(yield* fs.exists(`${directory}/checkpoints/step_2`))
    }).pipe(Effect.provide(disk)),
  )
})

describe("a process that wakes up in the middle of a write", () => {
  it.effect("cannot move a link in the moment in which the run is taken over", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const fs = yield* FileSystem.FileSystem
      const first = yield* takeFence(directory, "process 1")
      // The run is taken over after the check that precedes the link, and before the link gets its name.
      const slow: FileSystem.FileSystem = {
        ...fs,
        symlink: (from, to) =>
          Effect.andThen(
            fs.symlink(from, to),
            Effect.orDie(takeFence(directory, "process 2").pipe(Effect.provide(disk))),
          ),
      }
      const old = yield* Effect.provideService(fenced(directory, first), FileSystem.FileSystem, slow)
      yield* Effect.flip(old.link("latest", "step_1"))
      assert.isUndefined(yield* old.target("latest"))
    }).pipe(Effect.provide(disk)),
  )

  it.effect("cannot change the file that the next process is writing", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const fs = yield* FileSystem.FileSystem
      const [asleep, wakeUp, finish] = [
        yield* Deferred.make<void>(),
        yield* Deferred.make<void>(),
        yield* Deferred.make<void>(),
      ]
      const writing = yield* Deferred.make<void>()
      const first = yield* takeFence(directory, "process 1")
      const sleepy: FileSystem.FileSystem = {
        ...fs,
        open: (path, options) =>
          Deferred.succeed(asleep, undefined).pipe(
            Effect.andThen(Deferred.await(wakeUp)),
            Effect.andThen(fs.open(path, options)),
          ),
      }
      const old = yield* Effect.provideService(fenced(directory, first), FileSystem.FileSystem, sleepy)
      const late = yield* Effect.forkChild(Effect.flip(old.write("metrics.json", "old")))
      yield* Deferred.await(asleep)
      const second = yield* takeFence(directory, "process 2")
      const slow: FileSystem.FileSystem = {
        ...fs,
        rename: (from, to) =>
          Deferred.succeed(writing, undefined).pipe(
            Effect.andThen(Deferred.await(finish)),
            Effect.andThen(fs.rename(from, to)),
          ),
      }
      const next = yield* Effect.provideService(fenced(directory, second), FileSystem.FileSystem, slow)
      const write = yield* Effect.forkChild(next.write("metrics.json", "new"))
      yield* Deferred.await(writing)
      yield* Deferred.succeed(wakeUp, undefined)
      assert.match((yield* Fiber.join(late)).message, /taken this run over from lease 1/)
      yield* Deferred.succeed(finish, undefined)
      yield* Fiber.join(write)
      assert.strictEqual(yield* next.readText("metrics.json"), "new")
    }).pipe(Effect.provide(disk)),
  )
})

describe("the processes that opened a run before", () => {
  it.effect("count as dead on other machines alone: a living process of this one keeps its locks", () =>
    Effect.gen(function* () {
      const resultsDir = yield* temporaryDirectory
      const fs = yield* FileSystem.FileSystem
      const { files, close } = yield* opened(resultsDir, "here 1")
      yield* files.write("config.yaml", "")
      yield* close
      yield* (yield* opened(resultsDir, "elsewhere 1", files.directory)).close
      for (const name of ["here 1", "elsewhere 1"]) {
        yield* fs.makeDirectory(`${resultsDir}/${name}`)
        yield* fs.writeFileString(`${resultsDir}/${name}/run.lock`, name)
      }
      const owner = {
        name: "here 2",
        // Processes elsewhere are assumed to be alive.
        isAlive: (name: string) => Effect.succeed(name !== "here 2"),
        isLocal: (name: string) => name.startsWith("here"),
      }
      const layer = RunStore.layerFileSystem({
        resultsDir,
        time: moment,
        commit: "0123abc",
        owner,
        resume: files.directory,
      })
      yield* Effect.gen(function* () {
        const store = yield* RunStore
        yield* store.open(run)
        yield* store.lock(`${resultsDir}/elsewhere 1`)
        const refused = yield* Effect.flip(store.lock(`${resultsDir}/here 1`))
        assert.strictEqual(refused.holder, "here 1")
      }).pipe(Effect.scoped, Effect.provide(layer))
    }).pipe(Effect.provide(disk)),
  )
})

describe("the number of a run's lease", () => {
  it.effect("grows with each process, also after one was killed between its two steps", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const fs = yield* FileSystem.FileSystem
      const one = yield* takeFence(directory, "process 1")
      yield* fs.writeFileString(`${directory}/.run.lease-2.tmp`, "")
      const three = yield* takeFence(directory, "process 3")
      assert.deepStrictEqual([one.number, three.number], [1, 3])
      yield* fs.writeFileString(`${directory}/run.lease`, "damaged")
      yield* Effect.flip(three.check)
      const after = yield* takeFence(directory, "process 4")
      yield* after.check
    }).pipe(Effect.provide(disk)),
  )

  it.effect("is taken by one process only if many take it at the same moment", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const names = Array.from({ length: 16 }, (_, at) => `process ${at}`)
      const taken = yield* Effect.forEach(names, (name) => Effect.result(takeFence(directory, name)), {
        concurrency: "unbounded",
      })
      const checks = yield* Effect.forEach(taken, (one) =>
        one._tag === "Success" ? Effect.isSuccess(one.success.check) : Effect.succeed(false),
      )
      assert.lengthOf(
        checks.filter((holds) => holds),
        1,
      )
    }).pipe(Effect.provide(disk)),
  )
})
