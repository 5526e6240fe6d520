import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, FileSystem, Layer, Path, Result } from "effect"
import { TestClock } from "effect/testing"
import { onDisk } from "../../../src/run/store/FileTree.ts"
import { Broadcasts, broadcast, type WeightFiles } from "../../../src/trainer/weights/Broadcasts.ts"
import { newestBroadcast, readBroadcast } from "../../../src/trainer/weights/receive.ts"
import type { RunFolder } from "../../../src/trainer/runs/guardedFolder.ts"
import { Runs } from "../../../src/trainer/runs/Runs.ts"
import type { RunSlot } from "../../../src/trainer/runs/RunSlot.ts"
import { brokenDisk } from "../../run/store/brokenDisk.ts"
import { disk } from "../../run/store/disk.ts"
import { startRanks } from "../ranks.ts"
import { publishOrEvict } from "../../../src/trainer/outside/publishing.ts"
import { filesBelow, reopen, temporaryRunFolder } from "../folders.ts"
import { isGone } from "../../../src/trainer/TrainerError.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

const adapter = (step: number): WeightFiles => ({
  "adapter_model.safetensors": bytes(`adapter of step ${step}`),
  "adapter_config.json": bytes("{}"),
})

const publish = (folder: RunFolder, step: number, keep = 2) =>
  broadcast(folder, step, { keep, contents: Effect.succeed(adapter(step)) })

const withFolder = <E>(body: (folder: RunFolder) => Effect.Effect<void, E, FileSystem.FileSystem | Path.Path>) =>
  Effect.flatMap(temporaryRunFolder, body).pipe(Effect.provide(disk))

const adapterOf = (files: Readonly<Record<string, Uint8Array>> | undefined) =>
  files === undefined ? undefined : new TextDecoder().decode(files["adapter_model.safetensors"])

describe("a broadcast", () => {
  it.effect("is a folder with the files of an adapter and STABLE; the newest ones are kept", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        for (const step of [8, 9, 10]) yield* publish(folder, step)
        assert.deepEqual(
          yield* filesBelow(`${folder.directory}/broadcast`),
          ["step_10", "step_9"].flatMap((step) => [
            step,
            ...["STABLE", "adapter_config.json", "adapter_model.safetensors"].map((file) => `${step}/${file}`),
          ]),
        )
        assert.strictEqual(yield* newestBroadcast(folder.tree), 10)
        assert.strictEqual(adapterOf(yield* readBroadcast(folder.tree, 10)), "adapter of step 10")
        yield* broadcast(folder, 11, {
          keep: 1,
          contents: Effect.succeed({ "model.safetensors": bytes("all") }),
        })
        assert.deepEqual(Object.keys((yield* readBroadcast(folder.tree, 11)) ?? {}), ["model.safetensors"])
        assert.deepEqual(yield* folder.tree.list("broadcast"), ["step_11"])
      }),
    ),
  )

  it.effect("without STABLE is not seen, and neither are other names", () =>
    withFolder(({ tree }) =>
      Effect.gen(function* () {
        yield* tree.write("broadcast/step_3/adapter_model.safetensors", "half")
        yield* tree.write("broadcast/step_latest/STABLE", "")
        yield* tree.write("broadcast/.step_4.tmp/STABLE", "")
        assert.isUndefined(yield* newestBroadcast(tree))
        assert.isUndefined(yield* readBroadcast(tree, 3))
        yield* tree.write("broadcast/step_2/STABLE", "")
        assert.strictEqual(yield* newestBroadcast(tree), 2)
        assert.isUndefined(yield* newestBroadcast(tree, 3))
      }),
    ),
  )

  it.effect("is complete or not there, at whichever change the disk breaks, and the next one succeeds", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        let at = 0
        for (let isDone = false; !isDone;) {
          at++
          yield* folder.tree.remove("broadcast")
          yield* publish(folder, 1, 1)
          const { layer, changes } = brokenDisk({ at, code: "ENOSPC" })
          const broken = yield* reopen(folder).pipe(Effect.provide(Layer.merge(layer, Path.layer)))
          const result = yield* Effect.result(publish(broken, 2, 1))
          isDone = changes.count < at
          const newest = yield* newestBroadcast(folder.tree)
          // Once the new one is complete, only the removal of the old one can have failed.
          if (Result.isSuccess(result)) assert.strictEqual(newest, 2)
          else {
            const path = `${folder.directory}/broadcast/step_2`
            const { _tag, code, message } = result.failure
            assert.deepEqual([_tag, code], ["TrainerError", "ENOSPC"])
            assert.isTrue(message.startsWith(`${path}: `), message)
            assert.include(message, "no space left on device")
          }
          assert.include([1, 2], newest)
          assert.strictEqual(adapterOf(yield* readBroadcast(folder.tree, newest ?? 0)), `adapter of step ${newest}`)
          yield* publish(folder, 2, 1)
          assert.deepEqual(yield* folder.tree.list("broadcast"), ["step_2"], `broken at change ${at}`)
        }
        assert.isAtLeast(at, 10)
      }),
    ),
  )

  it.effect("is not written into a folder that was deleted, or deleted and made again with the same inode", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const { directory } = folder
        yield* folder.tree.write("control/token", "first")
        const marked = yield* reopen(folder)
        yield* publish(marked, 1)
        // The same folder, whose files are replaced by those of another run.
        yield* marked.tree.write("control/token", "second")
        const replaced = yield* Effect.flip(publish(marked, 2))
        assert.isTrue(isGone(replaced))
        assert.deepEqual(yield* folder.tree.list("broadcast"), ["step_1"])
        yield* fs.remove(directory, { recursive: true })
        const { reason, message } = yield* Effect.flip(publish(folder, 2))
        assert.strictEqual(reason, "gone")
        assert.strictEqual(
          message,
          `${directory}/broadcast/step_2: ${directory}: expected the folder of run_a, which was deleted or replaced`,
        )
        assert.isFalse(yield* fs.exists(directory))
      }),
    ),
  )
})

/** Lets the poll interval pass. The files are real, so the poll that follows takes an unknown number of turns. */
const lookAgain = TestClock.adjust("100 millis")
const until = (condition: Effect.Effect<boolean>): Effect.Effect<void> =>
  Effect.flatMap(condition, (holds) =>
    holds ? Effect.void : lookAgain.pipe(Effect.andThen(immediate), Effect.andThen(until(condition))),
  )
const immediate = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
const awaitedBy = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.andThen(until(Effect.sync(() => fiber.pollUnsafe() !== undefined)), Fiber.join(fiber))

describe("the broadcasts of all runs", () => {
  /** Starts a trainer of several runs, whose weights can be made to fail by their ids. */
  const setUpWith = Effect.fnUntraced(function* (keep: number, atOnce = false) {
    const { files, master: runs, turn, directory } = yield* startRanks(1, { maxConcurrentRuns: 3 })
    const failing = new Set<string>()
    /** The ids of the runs whose weights were asked for. */
    const asked: Array<string> = []
    const contents = ({ id, progress }: RunSlot) =>
      Effect.suspend(() => {
        asked.push(id)
        return failing.has(id) ? Effect.fail({ message: "out of memory" }) : Effect.succeed(adapter(progress.step))
      })
    const layer = Broadcasts.layer({ keep, atOnce, contents }).pipe(Layer.provide(Layer.succeed(Runs, runs)))
    const service = yield* Layer.build(layer)
    /** Begins a run, or resumes it from the checkpoint of a step. */
    const begin = (id: string, step = 0, config = "") =>
      Effect.gen(function* () {
        files.add(id, config)
        files.remove(`${id}/checkpoints`)
        if (step > 0) files.write(`${id}/checkpoints/step_${step}/STABLE`, "")
        yield* turn
        return runs.slots().find((run) => run.id === id) ?? assert.fail(`${id} is not trained`)
      })
    const steps = (id: string, folder = "broadcast") =>
      Effect.flatMap(onDisk(`${directory}/${id}`), (tree) => tree.list(folder))
    const broadcasts = Context.get(service, Broadcasts)
    const publish = Effect.suspend(() => broadcasts.publish(updated.splice(0)))
    const publishMeanwhile = Effect.suspend(() => broadcasts.publishMeanwhile(updated.splice(0)))
    return { ...broadcasts, broadcasts, publish, publishMeanwhile, runs, turn, files, begin, failing, asked, steps }
  })
  const setUp = setUpWith(2)

  /** The runs that were updated since the last turn. */
  const updated: Array<RunSlot> = []
  /** Lets an update of a run happen. */
  const update = (run: RunSlot) => {
    run.progress.step++
    updated.push(run)
  }

  it.effect("are written when a run begins, if orchestrators elsewhere wait for them", () =>
    Effect.gen(function* () {
      const { begin, failing, steps, runs, files, turn } = yield* setUpWith(2, true)
      yield* begin("run_a")
      yield* begin("run_b", 4)
      assert.deepEqual([yield* steps("run_a"), yield* steps("run_b")], [["step_0"], ["step_4"]])
      failing.add("run_c")
      files.add("run_c")
      yield* turn
      assert.deepEqual(
        runs.slots().map(({ id }) => id),
        ["run_a", "run_b"],
      )
      const [evicted] = (yield* runs.status).evicted
      assert.match(evicted.reason, /run_c\/broadcast\/step_0: out of memory$/)
    }).pipe(Effect.provide(disk)),
  )

  it.effect("cost only the run that they fail for, after some attempts, if orchestrators elsewhere wait for them", () =>
    Effect.gen(function* () {
      const { begin, broadcasts, pending, failing, steps, runs, turn } = yield* setUpWith(2, true)
      const [a, b] = [yield* begin("run_a"), yield* begin("run_b")]
      const publishing = Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(publishOrEvict(updated.splice(0), broadcasts, runs))
        yield* awaitedBy(fiber)
        yield* turn
      })
      update(a)
      update(b)
      failing.add("run_a")
      yield* publishing
      assert.deepEqual(
        runs.slots().map(({ id }) => id),
        ["run_b"],
      )
      assert.include(yield* steps("run_b"), "step_1")
      const [evicted] = (yield* runs.status).evicted
      assert.match(evicted.reason, /run_a\/broadcast\/step_1: out of memory$/)
      // A failure that does not last costs no run.
      update(b)
      failing.add("run_b")
      const fiber = yield* Effect.forkChild(publishOrEvict(updated.splice(0), broadcasts, runs))
      yield* until(Effect.sync(() => pending().length > 0))
      failing.delete("run_b")
      yield* awaitedBy(fiber)
      yield* turn
      assert.deepEqual(
        runs.slots().map(({ id }) => id),
        ["run_b"],
      )
      assert.include(yield* steps("run_b"), "step_2")
    }).pipe(Effect.provide(disk)),
  )

  it.effect("are written for ready runs only, and a failed one is written at the next turn", () =>
    Effect.gen(function* () {
      const { begin, publish, pending, failing, steps } = yield* setUp
      const a = yield* begin("run_a")
      const b = yield* begin("run_b")
      assert.deepEqual(yield* publish, [])
      update(a)
      assert.deepEqual(
        (yield* publish).map(({ run, step }) => [run.id, step]),
        [["run_a", 1]],
      )
      update(a)
      update(b)
      failing.add("run_a")
      const outcomes = yield* publish
      assert.deepEqual(
        outcomes.map(({ run, result }) => [run.id, Result.isSuccess(result)]),
        [
          ["run_a", false],
          ["run_b", true],
        ],
      )
      const [{ result }] = outcomes
      assert.match(Result.isFailure(result) ? result.failure.message : "", /run_a\/broadcast\/step_2: out of memory$/)
      assert.deepEqual(pending(), ["run_a"])
      failing.clear()
      assert.deepEqual(
        (yield* publish).map(({ run, step }) => [run.id, step]),
        [["run_a", 2]],
      )
      assert.deepEqual([yield* steps("run_a"), yield* steps("run_b")], [["step_1", "step_2"], ["step_1"]])
      assert.deepEqual([yield* publish, pending()], [[], []])
    }).pipe(Effect.provide(disk)),
  )

  it.effect("can be written while the runs change, but for those of a last step", () =>
    Effect.gen(function* () {
      const { begin, publishMeanwhile, settled, pending, failing, steps, files } = yield* setUp
      const [a, b] = [yield* begin("run_a"), yield* begin("run_b", 0, "max_steps = 1")]
      update(a)
      yield* publishMeanwhile
      // The files take several turns of the event loop, and there was none yet.
      assert.isFalse(files.has("run_a/broadcast/step_1"))
      update(a)
      yield* settled(a)
      assert.strictEqual(files.text("run_a/broadcast/step_1/adapter_model.safetensors"), "adapter of step 1")
      update(b)
      yield* publishMeanwhile
      assert.deepEqual(yield* steps("run_b"), ["step_1"])
      // The weights of the next step wait for those of this one.
      update(a)
      yield* publishMeanwhile
      yield* settled(a)
      assert.deepEqual(yield* steps("run_a"), ["step_2", "step_3"])
      failing.add("run_a")
      update(a)
      yield* publishMeanwhile
      yield* settled(a)
      assert.deepEqual(pending(), ["run_a"])
      failing.clear()
      yield* publishMeanwhile
      yield* settled(a)
      assert.deepEqual([yield* steps("run_a"), pending()], [["step_3", "step_4"], []])
    }).pipe(Effect.provide(disk)),
  )

  it.effect("of a run whose folder is gone are given up, and a new run of the same name begins with none", () =>
    Effect.gen(function* () {
      const { begin, publish, pending, failing, steps, files, turn } = yield* setUp
      update(yield* begin("run_a"))
      files.remove("run_a")
      const [{ result }] = yield* publish
      assert.isTrue(Result.isFailure(result) && isGone(result.failure))
      assert.deepEqual(pending(), [])
      assert.isFalse(files.has("run_a"))
      // A run whose weights are still to be published is deleted and made again between two turns.
      failing.add("run_b")
      const first = yield* begin("run_b")
      update(first)
      yield* publish
      assert.deepEqual(pending(), ["run_b"])
      failing.clear()
      files.remove("run_b")
      files.add("run_b")
      const [outcome] = yield* publish
      assert.isTrue(Result.isFailure(outcome.result) && isGone(outcome.result.failure))
      assert.isFalse(files.has("run_b/broadcast"))
      yield* turn
      assert.deepEqual([yield* publish, yield* steps("run_b")], [[], []])
    }).pipe(Effect.provide(disk)),
  )

  it.effect("of a resumed run are those of its step: later ones are removed, and a missing one is written", () =>
    Effect.gen(function* () {
      for (const [broadcast, step, kept, written] of [
        [[7, 8], 7, [7], []],
        [[7, 8], 8, [7, 8], []],
        [[7, 8], 5, [], [5]],
        [[7, 8], 0, [], []],
      ] as const) {
        const { begin, publish, steps, files, asked } = yield* setUp
        for (const other of broadcast) files.write(`run_a/broadcast/step_${other}/STABLE`, "")
        yield* begin("run_a", step)
        const names = (some: ReadonlyArray<number>) => some.map((other) => `step_${other}`)
        assert.deepEqual(yield* steps("run_a"), names([...kept, ...written]))
        assert.deepEqual(asked, written.length === 0 ? [] : ["run_a"])
        assert.deepEqual(yield* publish, [])
      }
    }).pipe(Effect.provide(disk)),
  )

  it.effect("come with weights every so many steps and at the end, if the run's config asks for them", () =>
    Effect.gen(function* () {
      for (const keep of [0, 2]) {
        const { begin, publish, steps, asked, files } = yield* setUpWith(keep)
        const a = yield* begin("run_a", 0, "max_steps = 5\nweights = { every = 2 }")
        const b = yield* begin("run_b", 0, "weights = { every = 1, keep = 1 }")
        const c = yield* begin("run_c")
        for (let step = 1; step <= 5; step++) {
          for (const run of [a, b, c]) update(run)
          yield* publish
        }
        assert.deepEqual(yield* steps("run_a", "weights"), ["step_2", "step_4", "step_5"])
        assert.deepEqual(yield* steps("run_b", "weights"), ["step_5"])
        assert.deepEqual(yield* steps("run_c", "weights"), [])
        assert.deepEqual(yield* steps("run_a"), keep === 0 ? [] : ["step_4", "step_5"])
        assert.strictEqual(files.text("run_a/weights/step_4/adapter_model.safetensors"), "adapter of step 4")
        // Without broadcasts, weights are asked for only where they are due.
        const count = (id: string) => asked.filter((one) => one === id).length
        assert.deepEqual([count("run_a"), count("run_b"), count("run_c")], keep === 0 ? [3, 5, 0] : [5, 5, 5])
      }
    }).pipe(Effect.provide(disk)),
  )

  it.effect("of a resumed run are written again where they are missing, and removed where they are too new", () =>
    Effect.gen(function* () {
      const { begin, pending, steps, files } = yield* setUpWith(0)
      for (const step of [2, 6]) files.write(`run_a/weights/step_${step}/STABLE`, "")
      // They are written when the run begins, because a run at its last step has no other turn.
      yield* begin("run_a", 4, "max_steps = 4\nweights = { every = 2 }")
      assert.deepEqual([yield* steps("run_a", "weights"), pending()], [["step_2", "step_4"], []])
    }).pipe(Effect.provide(disk)),
  )
})
