import { Deferred, Effect, Fiber, Stream } from "effect"
import { assert, describe } from "vitest"
import { RunStoreError } from "../../../src/run/store/RunStoreError.ts"
import * as Layout from "../../../src/trainer/Layout.ts"
import type { RunChange } from "../../../src/trainer/runs/RunSlot.ts"
import { failing, logging } from "../ranks.ts"
import { check } from "./checkRuns.ts"

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

  check(
    "tell at once that a config was refused, a run evicted, and a folder deleted, once each",
    ({ files, turn, register, master }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const told: Array<string> = []
          const tell = (what: string) => (run: { readonly id: string; readonly reason?: string }) =>
            Effect.sync(() => void told.push([what, run.id, run.reason].filter((part) => part !== undefined).join(" ")))
          yield* register({ invalid: tell("invalid"), evicted: tell("evicted"), vanished: tell("vanished") }, 0)
          const since = (): ReadonlyArray<string> => told.splice(0)
          files.add("run_a")
          files.add("run_b", "broken")
          files.write("run_c/control/evicted.txt", "an earlier fault\n")
          yield* turn
          assert.deepStrictEqual(since(), ["invalid run_b", "evicted run_c an earlier fault"])
          yield* master.evict(0, "its loss is\nnot finite")
          yield* turn
          yield* turn
          assert.deepStrictEqual(since(), ["evicted run_a its loss is; not finite"])
          files.remove("run_a/control/evicted.txt")
          yield* turn
          files.remove("run_a")
          yield* turn
          assert.deepStrictEqual(since(), ["vanished run_a"])
          yield* turn
          assert.deepStrictEqual(since(), [])
        }),
      ),
  )

  check("that find a run locked at its creation leave its folder alone", ({ files, turn, register, ids, master }) =>
    Effect.scoped(
      Effect.gen(function* () {
        const locked = new RunStoreError({ path: "run.lock", operation: "lock", holder: "another", message: "locked" })
        let isLocked = true
        const refuse = () => (isLocked ? Effect.fail(locked) : Effect.void)
        yield* register({ creation: refuse }, 0)
        files.add("run_a")
        yield* turn
        assert.strictEqual(ids(), "- -")
        const { evicted, invalid } = yield* master.status
        assert.deepStrictEqual(evicted, [])
        assert.deepStrictEqual(
          invalid.map(({ id, message }) => [id, message]),
          [["run_a", "locked"]],
        )
        for (const file of [Layout.evicted, Layout.configProblem]) assert.isUndefined(files.text(`run_a/${file}`))
        isLocked = false
        yield* turn
        assert.strictEqual(ids(), "run_a -")
      }),
    ),
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
