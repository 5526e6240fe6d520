import { mkdirSync, writeFileSync } from "node:fs"
import { Deferred, Duration, Effect, Fiber, Layer, Logger, Stream } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe, it } from "vitest"
import type { RunChange } from "../../../src/multirun/runs/Runs.ts"
import { failing, logging, startRanks, type World } from "../ranks.ts"

const check = (
  title: string,
  body: (world: World) => Effect.Effect<void, unknown, never>,
  ranks = 1,
  maxConcurrentRuns = 2,
) =>
  it(title, () =>
    Effect.runPromise(
      Effect.flatMap(startRanks(ranks, { maxConcurrentRuns }), body).pipe(
        Effect.scoped,
        Effect.provide(Logger.layer([])),
      ),
    ),
  )

describe("discovery", () => {
  check(
    "takes folders run_* with a config, sorted, each to the lowest free index",
    ({ files, turn, ids, master }) =>
      Effect.gen(function* () {
        files.add("run_b")
        files.write("run_a.b/configs/orch.yaml", "max_steps: 3")
        files.add("other")
        files.add("run_")
        files.write("run_file", "")
        files.write("run_empty/notes.txt", "")
        yield* turn
        assert.strictEqual(ids(), "run_a.b run_b -")
        assert.strictEqual(master.config(0)?.maxSteps, 3)
        assert.deepStrictEqual((yield* master.status).unconfigured, ["run_empty"])
        assert.strictEqual(master.idToIndex("run_b"), 1)
        assert.isUndefined(master.idToIndex("run_c"))
        assert.deepStrictEqual([master.usedIndices(), master.unusedIndices()], [[0, 1], [2]])
        files.remove("run_a.b")
        files.add("run_empty")
        yield* turn
        assert.strictEqual(ids(), "run_empty run_b -")
      }),
    1,
    3,
  )

  check("needs a sync to change an index, but finds no run that vanished before it", ({ files, ids, master }) =>
    Effect.gen(function* () {
      files.add("run_a")
      yield* master.checkForChanges
      assert.strictEqual(ids(), "- -")
      assert.deepStrictEqual(
        (yield* master.status).waiting.map(({ id }) => id),
        ["run_a"],
      )
      files.remove("run_a")
      yield* master.checkForChanges
      yield* master.syncRuns
      assert.strictEqual(ids(), "- -")
    }),
  )

  check(
    "takes a folder that was deleted and made again between two looks for a new run",
    ({ files, turn, ids, master, logs }) =>
      Effect.gen(function* () {
        files.add("run_a")
        files.add("run_b")
        yield* turn
        const before = master.slot(0)
        assert(before !== undefined)
        before.progress.step = 7
        before.readyToUpdate = true
        files.remove("run_a")
        files.add("run_a", "seed = 2")
        logs[0].length = 0
        yield* turn
        const after = master.slot(0)
        assert(after !== undefined)
        assert.strictEqual(ids(), "run_a run_b")
        assert.isAbove(after.generation, before.generation)
        assert.deepStrictEqual(after.progress, { step: 0, totalTokens: 0, totalSamples: 0 })
        assert.isFalse(after.readyToUpdate)
        assert.strictEqual(after.config.seed, 2)
        assert.deepStrictEqual(logs[0], [
          "forgotten run_a",
          "discovered run_a",
          "deletion run_a 0",
          "creation run_a 0",
          "postCreation run_a 0",
        ])
      }),
  )

  check("keeps a trained run whose config changes or breaks", ({ files, turn, ids, master }) =>
    Effect.gen(function* () {
      files.add("run_a", "seed = 1")
      yield* turn
      const { generation } = master.slot(0) ?? {}
      for (const config of ["seed = 2", "broken"]) {
        files.add("run_a", config)
        yield* turn
        assert.strictEqual(master.slot(0)?.generation, generation)
        assert.strictEqual(master.config(0)?.seed, 1)
      }
      assert.strictEqual(ids(), "run_a -")
      assert.isFalse(files.has("run_a/configs/config_validation_error.txt"))
    }),
  )

  check(
    "fails if the output folder vanishes, instead of deleting all runs",
    ({ directory, files, turn, ids, master }) =>
      Effect.gen(function* () {
        files.add("run_a")
        yield* turn
        files.remove(".")
        const error = yield* Effect.flip(master.checkForChanges)
        assert.strictEqual(error.message, `${directory}: cannot look for runs: no such file or directory`)
        assert.strictEqual(ids(), "run_a -")
      }),
  )
})

describe("a bad config", () => {
  const problem = "run_bad/configs/config_validation_error.txt"

  check(
    "is explained in its folder, stops no other run, and is read again when it changes",
    ({ files, turn, ids, logs }) =>
      Effect.gen(function* () {
        files.add("run_bad", "[lora]\nrnak = 2")
        files.add("run_good")
        yield* turn
        yield* turn
        assert.strictEqual(ids(), "run_good -")
        assert.strictEqual(
          files.text(problem),
          `${files.at("run_bad/configs/orch.toml")}:2: unknown key "lora.rnak"; did you mean "rank"?\n`,
        )
        assert.strictEqual(logs[0].filter((line) => line.startsWith("invalid")).length, 1)
        files.add("run_bad", "max_steps = 0")
        yield* turn
        assert.match(files.text(problem) ?? "", /orch\.toml:1: max_steps: expected a value greater than 0, found 0/)
        assert.strictEqual(logs[0].filter((line) => line.startsWith("invalid")).length, 2)
        files.add("run_bad", "max_steps = 1")
        yield* turn
        assert.strictEqual(ids(), "run_good run_bad")
        assert.isFalse(files.has(problem))
      }),
  )

  check("makes no folder again that vanished, and writes nothing where there is no config", ({ files, turn }) =>
    Effect.gen(function* () {
      files.add("run_bad", "broken")
      files.write("run_empty/notes.txt", "")
      yield* turn
      files.remove("run_bad")
      yield* turn
      assert.isFalse(files.has("run_bad"))
      assert.isFalse(files.has("run_empty/configs"))
      assert.isFalse(files.has("run_empty/control"))
      files.add("run_bad", "broken")
      yield* turn
      assert.isTrue(files.has(problem))
    }),
  )

  check("is one of two configs, whichever is meant", ({ files, turn, ids }) =>
    Effect.gen(function* () {
      files.add("run_bad")
      files.write("run_bad/configs/orch.yaml", "")
      yield* turn
      assert.strictEqual(ids(), "- -")
      assert.match(
        files.text(problem) ?? "",
        /configs: expected one config, found orch\.toml and orch\.yaml; remove one/,
      )
    }),
  )

  check("is one that a part refuses, for example a rank above the trainer's", ({ files, register, turn, ids }) =>
    Effect.scoped(
      Effect.gen(function* () {
        yield* register({
          validation: ({ config }) =>
            (config.lora.rank ?? 0) > 16 ? Effect.fail({ message: "lora.rank: expected at most 16" }) : Effect.void,
        })
        files.add("run_bad", "lora.rank = 32")
        yield* turn
        assert.strictEqual(ids(), "- -")
        assert.strictEqual(files.text(problem), "lora.rank: expected at most 16\n")
        files.add("run_bad", "lora.rank = 16")
        yield* turn
        assert.strictEqual(ids(), "run_bad -")
      }),
    ),
  )

  check("loses its place in the queue", ({ files, turn, master, logs }) =>
    Effect.gen(function* () {
      for (const id of ["run_a", "run_b", "run_c", "run_d"]) files.add(id)
      yield* turn
      files.add("run_c", "broken")
      yield* turn
      files.add("run_c")
      yield* turn
      assert.deepStrictEqual(
        (yield* master.status).waiting.map(({ id }) => id),
        ["run_d", "run_c"],
      )
      assert.deepStrictEqual(
        logs[0].filter((line) => line.endsWith("run_c")),
        ["discovered run_c", "forgotten run_c", "invalid run_c", "discovered run_c"],
      )
    }),
  )
})

describe("more runs than indices", () => {
  check("wait in the order of their discovery, where they can be seen", ({ files, turn, ids, master }) =>
    Effect.gen(function* () {
      for (const id of ["run_m", "run_n", "run_z"]) files.add(id)
      yield* turn
      files.add("run_a")
      yield* turn
      const waiting = () => Effect.map(master.status, (status) => status.waiting.map(({ id }) => id))
      assert.deepStrictEqual(yield* waiting(), ["run_z", "run_a"])
      // A change of the config keeps the place.
      files.add("run_z", "seed = 5")
      files.remove("run_m")
      yield* turn
      assert.strictEqual(ids(), "run_z run_n")
      assert.strictEqual(master.config(0)?.seed, 5)
      assert.deepStrictEqual(yield* waiting(), ["run_a"])
      files.remove("run_n")
      files.remove("run_a")
      yield* turn
      assert.strictEqual(ids(), "run_z -")
    }),
  )
})

describe("the progress of a run", () => {
  const checkpoint = ({ files }: World, id: string, name: string, progress?: string, stable = true) => {
    files.write(`${id}/checkpoints/${name}/weights`, "")
    if (progress !== undefined) files.write(`${id}/checkpoints/${name}/progress.json`, progress)
    if (stable) files.write(`${id}/checkpoints/${name}/STABLE`, "")
  }

  check("begins at the newest complete checkpoint, with its totals", (world) =>
    Effect.gen(function* () {
      world.files.add("run_a")
      checkpoint(world, "run_a", "step_9", '{"step":9,"totalTokens":900,"totalSamples":90}')
      checkpoint(world, "run_a", "step_10", '{"step":10,"totalTokens":1000,"totalSamples":100}')
      checkpoint(world, "run_a", "step_12", undefined, false)
      for (const name of ["step_latest", "step_", "step_1e3", "step_007", "tmp"]) checkpoint(world, "run_a", name)
      yield* world.turn
      assert.deepStrictEqual(world.master.progress(0), { step: 10, totalTokens: 1000, totalSamples: 100 })
    }),
  )

  check("begins at the checkpoint that the config names, or at 0", (world) =>
    Effect.gen(function* () {
      for (const [id, step] of [
        ["run_a", 4],
        ["run_b", 0],
      ] as const) {
        world.files.add(id, `resume_step = ${step}`)
        checkpoint(world, id, "step_4")
        checkpoint(world, id, "step_8")
      }
      yield* world.turn
      assert.deepStrictEqual([world.master.progress(0)?.step, world.master.progress(1)?.step], [4, 0])
    }),
  )

  check("begins at its newest checkpoint if it has gone back to the one that the config names", (world) =>
    Effect.gen(function* () {
      world.files.add("run_a", "resume_step = 4")
      checkpoint(world, "run_a", "step_8")
      world.files.write("run_a/control/resumed", "4\n")
      yield* world.turn
      assert.strictEqual(world.master.progress(0)?.step, 8)
      // Another step is another wish.
      world.files.add("run_b", "resume_step = 6")
      checkpoint(world, "run_b", "step_6")
      checkpoint(world, "run_b", "step_8")
      world.files.write("run_b/control/resumed", "4\n")
      yield* world.turn
      assert.strictEqual(world.master.progress(1)?.step, 6)
    }),
  )

  check("begins at an older checkpoint if the newest is damaged", (world) =>
    Effect.gen(function* () {
      world.files.add("run_a")
      checkpoint(world, "run_a", "step_3", '{"step":3,"totalTokens":30,"totalSamples":3}')
      checkpoint(world, "run_a", "step_4", '{"step":3}')
      yield* world.turn
      assert.deepStrictEqual(world.master.progress(0), { step: 3, totalTokens: 30, totalSamples: 3 })
    }),
  )

  check("is no guess: a missing checkpoint or a damaged file is explained", (world) =>
    Effect.gen(function* () {
      world.files.add("run_a", "resume_step = 5")
      checkpoint(world, "run_a", "step_4")
      checkpoint(world, "run_a", "step_6")
      world.files.add("run_b")
      checkpoint(world, "run_b", "step_4", '{"step":3}')
      yield* world.turn
      assert.strictEqual(world.ids(), "- -")
      assert.match(
        world.files.text("run_a/configs/config_validation_error.txt") ?? "",
        /run_a\/checkpoints: resume_step: expected the step of a complete checkpoint \(there are 4, 6\), 0 or -1, found 5\n$/,
      )
      assert.match(
        world.files.text("run_b/configs/config_validation_error.txt") ?? "",
        /run_b\/checkpoints\/step_4\/progress\.json: expected \{"step": 4, .* found \{"step":3\}\n$/,
      )
      checkpoint(world, "run_a", "step_5")
      world.files.remove("run_b/checkpoints/step_4")
      yield* world.turn
      assert.strictEqual(world.ids(), "run_a run_b")
      assert.strictEqual(world.master.progress(0)?.step, 5)
    }),
  )
})

describe("ranks", () => {
  check(
    "apply the same changes with the same configs, deletions first",
    ({ files, turn, ids, ranks, logs }) =>
      Effect.gen(function* () {
        files.add("run_a", "seed = 1")
        files.add("run_b", "seed = 2\n[train_dataset]\ntype = 'qa'")
        files.add("run_c", "seed = 3")
        yield* turn
        files.remove("run_a")
        yield* turn
        assert.strictEqual(ids(), "run_c run_b")
        for (const runs of ranks) {
          assert.deepStrictEqual(
            runs.slots().map(({ config }) => config.seed),
            [3, 2],
          )
          assert.deepStrictEqual(runs.config(1)?.trainDataset, { type: "qa" })
          assert.deepStrictEqual(runs.slots(), ranks[0].slots())
        }
        const onMasterOnly = /^(discovered|forgotten)/
        assert.deepStrictEqual(logs[1], [
          "creation run_a 0",
          "postCreation run_a 0",
          "creation run_b 1",
          "postCreation run_b 1",
          "deletion run_a 0",
          "creation run_c 0",
          "postCreation run_c 0",
        ])
        assert.deepStrictEqual(logs[2], logs[1])
        assert.deepStrictEqual(
          logs[0].filter((line) => !onMasterOnly.test(line)),
          logs[1],
        )
      }),
    3,
  )

  check(
    "see the master's progress and readiness after each sync",
    ({ files, turn, ranks, master }) =>
      Effect.gen(function* () {
        files.add("run_a")
        files.add("run_b")
        yield* turn
        const run = master.slot(1)
        assert(run !== undefined)
        Object.assign(run.progress, { step: 3, totalTokens: 30, totalSamples: 6 })
        run.readyToUpdate = true
        yield* turn
        assert.deepStrictEqual(ranks[1].progress(1), { step: 3, totalTokens: 30, totalSamples: 6 })
        assert.deepStrictEqual(ranks[1].readyToUpdateIndices(), [1])
        run.readyToUpdate = false
        yield* turn
        assert.deepStrictEqual(ranks[1].readyToUpdateIndices(), [])
      }),
    2,
  )

  it("notice a dead one by the deadline, by its number", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { ranks, files, turn } = yield* startRanks(3, { rankDeadline: "2 minutes" })
        files.add("run_a")
        yield* turn
        const alive = yield* Effect.forkChild(
          Effect.forEach([ranks[0], ranks[2]], (runs) => Effect.flip(runs.syncRuns), { concurrency: 2 }),
        )
        yield* TestClock.adjust("119 seconds")
        assert.isUndefined(alive.pollUnsafe())
        yield* TestClock.adjust("1 seconds")
        for (const error of yield* Fiber.join(alive)) {
          assert.strictEqual(error._tag, "StoreError")
          assert.match(error.message, /^runs\/2\/requests: rank 1 of 3 did not arrive within 2m; /)
        }
      }).pipe(Effect.scoped, Effect.provide(TestClock.layer())),
    ))
})

describe("hooks", () => {
  check("run in the order of their registration, until the part's scope closes", ({ files, turn, register, logs }) =>
    Effect.gen(function* () {
      const log = logs[0]
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* register(logging(log, "optimiser"))
          files.add("run_a")
          yield* turn
        }),
      )
      files.remove("run_a")
      yield* turn
      assert.deepStrictEqual(log, [
        "discovered run_a",
        "optimiser discovered run_a",
        "creation run_a 0",
        "optimiser creation run_a 0",
        "postCreation run_a 0",
        "optimiser postCreation run_a 0",
        "forgotten run_a",
        "deletion run_a 0",
      ])
    }),
  )

  for (const [rank, moment] of [
    [0, "creation"],
    [2, "creation"],
    [1, "postCreation"],
  ] as const) {
    check(
      `that fail at the ${moment} on rank ${rank} cost only their run, on all ranks`,
      ({ files, turn, register, logs, ids, master }) =>
        Effect.scoped(
          Effect.gen(function* () {
            yield* register({ [moment]: failing<{ id: string }>("no memory", ({ id }) => id === "run_b") }, rank)
            for (const id of ["run_a", "run_b", "run_c"]) files.add(id)
            yield* turn
            assert.strictEqual(ids(), "run_a -")
            const reason = `its creation failed on rank ${rank}: no memory`
            assert.strictEqual(files.text("run_b/control/evicted.txt"), `${reason}\n`)
            assert.deepStrictEqual((yield* master.status).evicted, [{ id: "run_b", reason }])
            for (const log of logs) assert.include(log, "deletion run_b 1")
            yield* turn
            assert.strictEqual(ids(), "run_a run_c")
            files.remove("run_b/control/evicted.txt")
            files.remove("run_a")
            yield* turn
            assert.strictEqual(ids(), "- run_c")
          }),
        ),
      3,
    )
  }

  check(
    "whose creation did not complete are not asked to delete",
    ({ files, turn, register, ranks, logs }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const log = logs[1]
          yield* register({ ...logging(log, "failing"), creation: failing("no") }, 1)
          yield* register(logging(log, "after"), 1)
          files.add("run_a")
          yield* turn
          assert.deepStrictEqual(log, ["creation run_a 0", "deletion run_a 0"])
          assert.lengthOf(ranks, 2)
        }),
      ),
    2,
  )

  check("that crash are failures, too; a failing deletion stops no other", ({ files, turn, register, logs, ids }) =>
    Effect.scoped(
      Effect.gen(function* () {
        yield* register({
          creation: ({ id }) => (id === "run_a" ? Effect.die(new Error("a defect")) : Effect.void),
          deletion: failing("cannot delete"),
        })
        yield* register(logging(logs[0], "last"))
        files.add("run_a")
        files.add("run_b")
        yield* turn
        assert.strictEqual(ids(), "- run_b")
        assert.strictEqual(files.text("run_a/control/evicted.txt"), "its creation failed on rank 0: a defect\n")
        files.remove("run_b")
        yield* turn
        assert.include(logs[0], "last deletion run_b 1")
      }),
    ),
  )

  check(
    "on a discovery evict the run, and only those that it completed for hear of its end",
    ({ files, turn, register, ids, logs }) =>
      Effect.scoped(
        Effect.gen(function* () {
          yield* register({ ...logging(logs[0], "failing"), discovered: failing("unwanted") })
          files.add("run_a")
          yield* turn
          assert.strictEqual(ids(), "- -")
          assert.strictEqual(files.text("run_a/control/evicted.txt"), "a hook on its discovery failed: unwanted\n")
          assert.deepStrictEqual(logs[0], ["discovered run_a", "forgotten run_a"])
        }),
      ),
  )
})

describe("an eviction", () => {
  check(
    "is asked for on any rank, takes effect on all, and is explained in the folder",
    ({ files, turn, ids, ranks, logs, master }) =>
      Effect.gen(function* () {
        for (const id of ["run_a", "run_b", "run_c"]) files.add(id)
        yield* turn
        yield* ranks[1].evict(0, "a sample is longer\nthan the sequence")
        yield* ranks[1].evict(5, "no such index")
        assert.strictEqual(ids(), "run_a run_b")
        yield* turn
        assert.strictEqual(ids(), "run_c run_b")
        assert.strictEqual(files.text("run_a/control/evicted.txt"), "a sample is longer; than the sequence\n")
        for (const log of logs) assert.strictEqual(log.filter((line) => line === "deletion run_a 0").length, 1)
        yield* turn
        assert.strictEqual(ids(), "run_c run_b")
        files.remove("run_a/control/evicted.txt")
        yield* turn
        assert.deepStrictEqual(
          (yield* master.status).waiting.map(({ id }) => id),
          ["run_a"],
        )
      }),
    2,
  )

  check("ends as soon as the user removes the reason", ({ files, turn, ids, master }) =>
    Effect.gen(function* () {
      files.add("run_a")
      yield* turn
      yield* master.evict(0, "too slow")
      yield* turn
      files.remove("run_a/control/evicted.txt")
      yield* turn
      assert.strictEqual(ids(), "run_a -")
    }),
  )

  check("by a file of the user works like one by the trainer, also before the start", ({ files, turn, ids, master }) =>
    Effect.gen(function* () {
      files.add("run_a")
      files.write("run_a/control/evicted.txt", "later\n")
      files.add("run_b")
      yield* turn
      assert.strictEqual(ids(), "run_b -")
      files.write("run_b/control/evicted.txt", "enough\n")
      yield* turn
      assert.strictEqual(ids(), "- -")
      assert.deepStrictEqual(
        (yield* master.status).evicted.map(({ reason }) => reason),
        ["later", "enough"],
      )
    }),
  )

  check("does not reach a folder that was made again", ({ files, turn, ids, master }) =>
    Effect.gen(function* () {
      files.add("run_a")
      yield* turn
      files.remove("run_a")
      files.add("run_a")
      yield* master.evict(0, "too old")
      yield* master.syncRuns
      assert.strictEqual(ids(), "- -")
      assert.isFalse(files.has("run_a/control/evicted.txt"))
      yield* turn
      assert.strictEqual(ids(), "run_a -")
    }),
  )
})

describe("changes", () => {
  check("are a stream", ({ files, turn, master }) =>
    Effect.gen(function* () {
      const ready = yield* Deferred.make<void>()
      const shown = ({ _tag, run }: RunChange) => `${_tag} ${run.id}`
      const collecting = yield* master.changes.pipe(
        Stream.onStart(Deferred.succeed(ready, undefined)),
        Stream.take(6),
        Stream.runCollect,
        Effect.forkChild({ startImmediately: true }),
      )
      yield* Deferred.await(ready)
      yield* Effect.yieldNow
      files.add("run_a")
      files.add("run_bad", "broken")
      yield* turn
      files.remove("run_a")
      yield* turn
      files.add("run_bad")
      yield* turn
      assert.deepStrictEqual((yield* Fiber.join(collecting)).map(shown), [
        "Discovered run_a",
        "Invalid run_bad",
        "Created run_a",
        "Forgotten run_a",
        "Deleted run_a",
        "Discovered run_bad",
      ])
    }),
  )
})

describe("waiting for the first run", () => {
  const waiting = (body: (world: World) => Effect.Effect<void, unknown>, ranks = 1, watch = false) =>
    Effect.runPromise(
      Effect.flatMap(
        startRanks(ranks, {
          maxConcurrentRuns: 1,
          firstRunDeadline: "5 minutes",
          pollInterval: "1 second",
          // The test's clock goes on while the ranks read files.
          rankDeadline: "30 days",
          watch,
        }),
        body,
      ).pipe(Effect.scoped, Effect.provide(Layer.merge(watch ? Layer.empty : TestClock.layer(), Logger.layer([])))),
    )

  it("looks at every interval, on all ranks together", () =>
    waiting(
      ({ ranks, files, ids }) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(
            Effect.forEach(ranks, ({ awaitRun }) => awaitRun, { concurrency: "unbounded" }),
          )
          yield* TestClock.adjust("10 seconds")
          assert.isUndefined(fiber.pollUnsafe())
          files.add("run_a")
          // The clock moves on only while the master waits: it may still be looking.
          while (fiber.pollUnsafe() === undefined) yield* Effect.andThen(TestClock.adjust("1 seconds"), live)
          yield* Fiber.join(fiber)
          assert.strictEqual(ids(), "run_a")
        }),
      3,
    ))

  it("ends at the deadline with the cause, on all ranks", () =>
    waiting(
      ({ ranks, files, directory }) =>
        Effect.gen(function* () {
          files.add("run_a", "max_steps = 0")
          files.write("run_b/notes.txt", "")
          const fiber = yield* Effect.forkChild(
            Effect.forEach(ranks, ({ awaitRun }) => Effect.flip(awaitRun), { concurrency: "unbounded" }),
          )
          while (fiber.pollUnsafe() === undefined) yield* Effect.andThen(TestClock.adjust("10 seconds"), live)
          const errors = yield* Fiber.join(fiber)
          for (const error of errors) {
            assert.strictEqual(error._tag, "RunsError")
            assert.strictEqual(
              error.message,
              `${directory}: found no run to train within 5m: ${files.at("run_a/configs/orch.toml")}:1: max_steps: expected a value greater than 0, found 0; run_b has no config`,
            )
          }
        }),
      2,
    ))

  it("says that there is no folder at all", () =>
    waiting(({ master, directory }) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(Effect.flip(master.awaitRun))
        while (fiber.pollUnsafe() === undefined) yield* Effect.andThen(TestClock.adjust("10 seconds"), live)
        assert.strictEqual(
          (yield* Fiber.join(fiber)).message,
          `${directory}: found no run to train within 5m: it holds no folder run_*`,
        )
      }),
    ))

  it("ends all ranks at once if the output folder vanishes", () =>
    waiting(
      ({ ranks, files }) =>
        Effect.gen(function* () {
          files.remove(".")
          for (const error of yield* Effect.forEach(ranks, ({ awaitRun }) => Effect.flip(awaitRun), {
            concurrency: "unbounded",
          }))
            assert.match(error.message, /cannot look for runs: no such file or directory$/)
        }),
      2,
    ))
})

/** Lets other fibers work and files be read. */
const live = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

describe("watching", () => {
  it("sees a new folder before the interval ends", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { master, files } = yield* startRanks(1, { watch: true, pollInterval: Duration.hours(5) })
        const fiber = yield* Effect.forkChild(master.pause)
        yield* live
        let count = 0
        // The watcher may not have begun yet, so more than one folder is made.
        while (fiber.pollUnsafe() === undefined) {
          mkdirSync(files.at(`run_${count++}`))
          yield* live
        }
        yield* Fiber.join(fiber)
      }).pipe(Effect.scoped),
    ))
})

describe("options", () => {
  it.for([
    [{ maxConcurrentRuns: 0 }, "max_concurrent_runs: expected a whole number from 1, found 0"],
    [{ maxConcurrentRuns: 1.5 }, "max_concurrent_runs: expected a whole number from 1, found 1.5"],
  ] as const)("that make no sense are refused: %j", ([options, message]) =>
    Effect.runPromise(
      Effect.gen(function* () {
        assert.strictEqual((yield* Effect.flip(startRanks(1, options))).message, message)
      }).pipe(Effect.scoped),
    ),
  )

  it("name a folder that can be made", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { files } = yield* startRanks(1)
        writeFileSync(files.at("file"), "")
        const error = yield* Effect.flip(startRanks(1, { outputDirectory: files.at("file/outputs") }))
        assert.match(error.message, /file\/outputs: cannot make it: /)
      }).pipe(Effect.scoped),
    ))
})

describe("a run that has reached its last step", () => {
  const finishedOf = (world: World) => Effect.map(world.master.status, ({ finished }) => finished)

  check(
    "gives its index to a waiting run, on all ranks, and begins again if its config asks for more",
    (world) =>
      Effect.gen(function* () {
        const { files, turn, ids, master, ranks } = world
        files.add("run_a", "max_steps = 2")
        files.add("run_b")
        yield* turn
        assert.strictEqual(ids(), "run_a")
        const progress = JSON.stringify({ step: 2, totalTokens: 9, totalSamples: 3 })
        files.write("run_a/checkpoints/step_2/progress.json", progress)
        files.write("run_a/checkpoints/step_2/STABLE", "")
        yield* master.finish(0)
        assert.strictEqual(ids(), "run_a")
        yield* turn
        for (const rank of ranks) assert.strictEqual(rank.indexToId(0), "run_b")
        assert.deepStrictEqual(yield* finishedOf(world), ["run_a"])
        files.remove("run_b")
        yield* turn
        assert.strictEqual(ids(), "-")
        files.write("run_a/configs/orch.toml", "max_steps = 3")
        yield* turn
        assert.strictEqual(ids(), "run_a")
        assert.strictEqual(master.progress(0)?.step, 2)
        assert.deepStrictEqual(yield* finishedOf(world), [])
      }),
    2,
    1,
  )

  check("gets no index when the trainer starts", (world) =>
    Effect.gen(function* () {
      const { files, turn, ids } = world
      files.add("run_a", "max_steps = 2")
      files.write("run_a/checkpoints/step_2/STABLE", "")
      files.write("run_a/control/finished", "2\n")
      // This one was interrupted between its last step and its last validation.
      files.add("run_b", "max_steps = 2")
      files.write("run_b/checkpoints/step_2/STABLE", "")
      files.write("run_b/control/finished", "1\n")
      yield* turn
      assert.strictEqual(ids(), "run_b -")
      assert.deepStrictEqual(yield* finishedOf(world), ["run_a"])
    }),
  )
})
