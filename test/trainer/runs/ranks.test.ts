import { Effect, Fiber, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe, it } from "vitest"
import type { RunSlot } from "../../../src/trainer/runs/RunSlot.ts"
import { startRanks, type World } from "../ranks.ts"
import { check, live } from "./checkRuns.ts"

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
          const shared = (run: RunSlot) => ({ ...run, own: undefined })
          assert.deepStrictEqual(runs.slots().map(shared), ranks[0].slots().map(shared))
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
          assert.deepEqual([error._tag, error.reason], ["TrainerError", "absent"])
          assert.match(error.message, /^runs\/2\/requests: rank 1 of 3 did not arrive within 2m; /)
        }
      }).pipe(Effect.scoped, Effect.provide(TestClock.layer())),
    ))
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
            assert.deepEqual([error._tag, error.reason], ["TrainerError", "stopped"])
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
