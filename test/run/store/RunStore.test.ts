import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, FileSystem, Layer, Path, Scope } from "effect"
import { fromPath } from "../../../src/run/identifier.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { brokenDisk } from "./brokenDisk.ts"
import { disk, identity, moment, openRun, temporaryDirectory } from "./disk.ts"

const path = "2026-01-31_12-00-00/0123abc_tune_algorithm_environment/ppo_CartPole-v1/0007"

describe("a run store on disk", () => {
  it.effect("opens a run in the folder of its identity, and tells of it", () =>
    Effect.gen(function* () {
      const resultsDir = yield* temporaryDirectory
      const opened: Array<string> = []
      const run = yield* openRun({ resultsDir, onOpen: (directory) => Effect.sync(() => void opened.push(directory)) })
      assert.strictEqual(run.directory, `${resultsDir}/${path}`)
      assert.deepEqual(opened, [run.directory])
      assert.deepEqual(fromPath(run.directory), { ...identity, time: "2026-01-31_12-00-00", commit: "0123abc" })
    }).pipe(Effect.provide(disk)),
  )

  it.effect("gives runs of the same second folders of their own, whose paths are still paths", () =>
    Effect.gen(function* () {
      const resultsDir = yield* temporaryDirectory
      const runs = yield* Effect.all(
        [1, 2, 3].map(() => openRun({ resultsDir })),
        { concurrency: "unbounded" },
      )
      assert.deepEqual(runs.map((run) => fromPath(run.directory)?.time).sort(), [
        "2026-01-31_12-00-00",
        "2026-01-31_12-00-01",
        "2026-01-31_12-00-02",
      ])
    }).pipe(Effect.provide(disk)),
  )

  it.effect("can keep them flat", () =>
    Effect.gen(function* () {
      const resultsDir = yield* temporaryDirectory
      const runs = [yield* openRun({ resultsDir, layout: "flat" }), yield* openRun({ resultsDir, layout: "flat" })]
      assert.deepEqual(
        runs.map((run) => run.directory),
        [`${resultsDir}/20260131_120000`, `${resultsDir}/20260131_120001`],
      )
    }).pipe(Effect.provide(disk)),
  )

  it.effect("goes on with a run that is there, after putting it in order", () =>
    Effect.gen(function* () {
      const first = yield* Effect.flatMap(temporaryDirectory, (resultsDir) => openRun({ resultsDir }))
      yield* first.write("config.yaml", "seed: 7\n")
      yield* first.write(".metrics.json.tmp", "half")
      const second = yield* openRun({ resultsDir: "/nowhere", resume: first.directory })
      assert.isTrue(second.resumed)
      assert.strictEqual(second.directory, first.directory)
      assert.deepEqual(yield* second.list(""), ["config.yaml"])
    }).pipe(Effect.provide(disk)),
  )

  it.effect("does not take just any folder for a run", () =>
    Effect.gen(function* () {
      const resultsDir = yield* temporaryDirectory
      for (const resume of [resultsDir, `${resultsDir}/missing`]) {
        const error = yield* Effect.flip(openRun({ resultsDir, resume }))
        assert.strictEqual(error.message, `${resume}: expected the folder of a run, found no config.yaml in it`)
        assert.strictEqual(error.path, resume)
      }
    }).pipe(Effect.provide(disk)),
  )

  it.effect("fails at once where it may not write, and names the place", () =>
    Effect.gen(function* () {
      const resultsDir = yield* temporaryDirectory
      const forbidden = Layer.merge(brokenDisk({ at: 1, code: "EACCES" }).layer, Path.layer)
      const error = yield* Effect.flip(openRun({ resultsDir }).pipe(Effect.provide(forbidden)))
      assert.strictEqual(error.message, `cannot create ${resultsDir}/${path}: permission denied`)
    }).pipe(Effect.provide(disk)),
  )

  for (const layout of ["rltools", "flat"] as const) {
    it.effect(`fails where the results directory of a ${layout} layout is a file`, () =>
      Effect.gen(function* () {
        const resultsDir = `${yield* temporaryDirectory}/file`
        yield* (yield* FileSystem.FileSystem).writeFileString(resultsDir, "")
        const error = yield* Effect.flip(openRun({ resultsDir, layout }))
        assert.match(
          error.message,
          /^cannot create .*\/file\/2026.*: (a part of the path is not a directory|it exists)/,
        )
      }).pipe(Effect.provide(disk)),
    )
  }
})

describe("the lock of a run", () => {
  const owner = (name: string, ...alive: ReadonlyArray<string>) => ({
    name,
    isAlive: (other: string) => Effect.succeed(alive.includes(other)),
  })
  /** Opens a run for an owner and leaves it open: gives what closes it. */
  const held = Effect.fnUntraced(function* (options: Parameters<typeof openRun>[0]) {
    const scope = yield* Scope.make()
    const run = yield* openRun(options).pipe(Scope.provide(scope))
    yield* run.write("config.yaml", "")
    return { run, close: Scope.close(scope, Exit.void) }
  })

  it.effect("keeps a second living process out until the first is done", () =>
    Effect.gen(function* () {
      const resultsDir = yield* temporaryDirectory
      const { run, close } = yield* held({ resultsDir, owner: owner("process 1") })
      const resuming = openRun({ resultsDir, resume: run.directory, owner: owner("process 2", "process 1") })
      const error = yield* Effect.flip(resuming)
      assert.strictEqual(
        error.message,
        `${run.directory}/run.lock: process 1 is writing this run; wait until it ends, or stop it; if it no longer exists, remove ${run.directory}/run.lock`,
      )
      yield* close
      yield* resuming
      assert.strictEqual(yield* run.readText("run.lock"), "process 2")
    }).pipe(Effect.provide(disk)),
  )

  it.effect("of a process that is no more is taken over", () =>
    Effect.gen(function* () {
      const resultsDir = yield* temporaryDirectory
      const { run } = yield* held({ resultsDir, owner: owner("process 1") })
      yield* openRun({ resultsDir, resume: run.directory, owner: owner("process 2") })
      assert.strictEqual(yield* run.readText("run.lock"), "process 2")
    }).pipe(Effect.provide(disk)),
  )

  it.effect("of a folder in it gives way if its process had opened the run before", () =>
    Effect.gen(function* () {
      const resultsDir = yield* temporaryDirectory
      const { run, close } = yield* held({ resultsDir, owner: owner("process 1") })
      yield* close
      yield* run.write("run_a/run.lock", "process 1")
      yield* run.write("run_b/run.lock", "process 3")
      const resumed = RunStore.layerFileSystem({
        resultsDir,
        time: moment,
        commit: "0123abc",
        resume: run.directory,
        owner: owner("process 2", "process 1", "process 3"),
      })
      yield* Effect.gen(function* () {
        const { open, lock } = yield* RunStore
        yield* open(identity)
        yield* lock(`${run.directory}/run_a`)
        assert.strictEqual(yield* run.readText("run_a/run.lock"), "process 2")
        const file = `${run.directory}/run_b/run.lock`
        const { message } = yield* Effect.flip(lock(`${run.directory}/run_b`))
        assert.strictEqual(
          message,
          `${file}: process 3 is writing this run; wait until it ends, or stop it; if it no longer exists, remove ${file}`,
        )
      }).pipe(Effect.provide(resumed))
    }).pipe(Effect.provide(disk)),
  )
})

describe("a run store in memory", () => {
  const open = Effect.flatMap(RunStore, (store) => store.open(identity))

  it.effect("shows its files by their whole paths", () =>
    Effect.gen(function* () {
      const store = RunStore.memory()
      const run = yield* Effect.provide(open, store.layer)
      yield* run.write("config.yaml", "seed: 7\n")
      assert.deepEqual([...store.files.keys()], [`${run.directory}/config.yaml`])
      assert.strictEqual(fromPath(run.directory)?.seed, 7)
    }),
  )

  it.effect("keeps runs apart, and goes on with one on demand", () =>
    Effect.gen(function* () {
      const { files, layer } = RunStore.memory()
      const [one, two] = yield* Effect.provide(
        Effect.all([
          Effect.tap(open, (run) => run.write("config.yaml", "1")),
          Effect.tap(open, (run) => run.write("x", "2")),
        ]),
        layer,
      )
      assert.notStrictEqual(one.directory, two.directory)
      const again = yield* Effect.provide(open, RunStore.memory({ files, resume: one.directory }).layer)
      assert.isTrue(again.resumed)
      assert.strictEqual(yield* again.readText("config.yaml"), "1")
      const error = yield* Effect.flip(Effect.provide(open, RunStore.memory({ files, resume: two.directory }).layer))
      assert.strictEqual(error.message, `${two.directory}: expected the folder of a run, found no config.yaml in it`)
    }),
  )
})
