import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Duration, Effect, Fiber } from "effect"
import { assert, describe, it } from "vitest"
import { startRanks } from "../ranks.ts"
import { check, live } from "./checkRuns.ts"

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

  check(
    "leaves a run with links in its folder alone, reads and writes nothing through them, and trains the others",
    ({ files, turn, ids, master }) =>
      Effect.gen(function* () {
        const users = mkdtempSync(join(tmpdir(), "effect-rl-users-"))
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(users, { recursive: true })))
        const names = ["finished", "orch.toml", "evicted", ".token.tmp", "step_1"]
        for (const name of names) writeFileSync(join(users, name), "max_steps = the user's")
        for (const name of ["control", "rollouts", "broadcast", "checkpoints", "configs", "scores", "run.log"]) {
          files.add(`run_${name}`)
          const target = name === "run.log" ? join(users, "finished") : users
          rmSync(files.at(`run_${name}/${name}`), { recursive: true, force: true })
          symlinkSync(target, files.at(`run_${name}/${name}`))
        }
        files.add("run_z")
        yield* turn
        yield* turn
        assert.strictEqual(ids(), "run_z - -")
        const { invalid } = yield* master.status
        assert.deepStrictEqual(invalid.map(({ id }) => id).sort(), [
          "run_broadcast",
          "run_checkpoints",
          "run_configs",
          "run_control",
          "run_rollouts",
          "run_run.log",
          "run_scores",
        ])
        for (const { id, message } of invalid) {
          assert.match(message, /is a link, .*: remove the link, or replace it/, id)
          assert.notInclude(message, "the user's")
        }
        assert.deepStrictEqual(readdirSync(users).sort(), names.toSorted())
        for (const name of names) assert.strictEqual(readFileSync(join(users, name), "utf8"), "max_steps = the user's")
      }).pipe(Effect.scoped),
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
          `${files.at("run_bad/configs/orch.toml")}:2: unknown key "lora.rnak"; did you mean "lora.rank"?\n`,
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
