import { Effect } from "effect"
import { assert, describe } from "vitest"
import { type World } from "../ranks.ts"
import { check } from "./checkRuns.ts"

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
