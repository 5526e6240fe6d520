import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, FileSystem, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { EnvError } from "../../../../src/base/EnvError.ts"
import * as MultiTextEnv from "../../../../src/agents/task/MultiTextEnv.ts"
import * as MultiAgentSync from "../../../../src/agents/episode/protocols/MultiAgentSync.ts"
import type { RolloutOutcome } from "../../../../src/agents/episode/rollouts/Outcome.ts"
import * as RolloutEngine from "../../../../src/agents/episode/rollouts/RolloutEngine.ts"
import * as RolloutRequest from "../../../../src/agents/episode/rollouts/RolloutRequest.ts"
import * as SingleAgent from "../../../../src/agents/episode/protocols/SingleAgent.ts"
import { LmError } from "../../../../src/agents/lm/LmError.ts"
import { batchOf, failing, newPath, parrot, tasksOf, textOf, written, yields } from "./batch.ts"
import { counting } from "../support.ts"

const files = Layer.merge(NodeFileSystem.layer, NodePath.layer)

const collected = Effect.fnUntraced(function* (batch: RolloutEngine.RolloutBatch) {
  const outcomes: Array<RolloutOutcome> = []
  const summary = yield* RolloutEngine.each(batch, (outcome) => Effect.sync(() => void outcomes.push(outcome)))
  return { outcomes, summary }
})

/** Files that are written in another way. */
const writing = (
  fs: FileSystem.FileSystem,
  writeAll: (file: FileSystem.File, bytes: Uint8Array) => ReturnType<FileSystem.File["writeAll"]>,
): FileSystem.FileSystem => ({
  ...fs,
  open: (path, options) =>
    Effect.map(fs.open(path, options), (file) =>
      Object.create(file, { writeAll: { value: (bytes: Uint8Array) => writeAll(file, bytes) } }),
    ),
})

const protocol = SingleAgent.make(parrot())

describe("a batch of requests", () => {
  it.effect("is played by tasks and seeds, with outcomes in order", () =>
    Effect.gen(function* () {
      const batch = batchOf(3)
      const { outcomes, summary } = yield* collected(batch)
      assert.deepStrictEqual(
        outcomes.map(({ request }) => request),
        [...batch.requests],
      )
      assert.deepStrictEqual(summary, { requests: 6, rollouts: 6, failed: 0, dropped: 0, resumed: 0 })
      for (const { request, rollouts, failure, protocol } of outcomes) {
        const [rollout] = rollouts
        assert.isNull(failure)
        assert.strictEqual(protocol, "SingleAgent")
        assert.strictEqual(rollout.id, request.id)
        assert.deepInclude(rollout.meta, {
          envId: `count-${request.task}`,
          envSeed: request.envSeed,
          samplingSeed: request.samplingSeed,
          groupId: request.groupId,
          tags: { split: "train" },
        })
        const env = yield* tasksOf(3).at(request.task)
        const { id, envSeed, samplingSeed, groupId, tags } = request
        const alone = yield* SingleAgent.play(parrot(), { id, env, envSeed, samplingSeed, groupId, tags })
        assert.deepStrictEqual(rollout, alone)
      }
    }),
  )

  it.effect("can be a stream, which plays no more than is taken", () =>
    Effect.gen(function* () {
      let begun = 0
      const wait = () => Effect.sync(() => void begun++)
      const batch = batchOf(1500, { protocol: SingleAgent.make(parrot(wait)), tasks: tasksOf(1500) })
      const all = yield* Stream.runCollect(RolloutEngine.stream(batchOf(3)))
      assert.deepStrictEqual(all, (yield* collected(batchOf(3))).outcomes)
      const [first] = yield* RolloutEngine.stream(batch).pipe(Stream.take(1), Stream.runCollect)
      assert.strictEqual(first.request.id, "task-0#0")
      assert.isBelow(begun, 3000)
    }),
  )

  it.effect("emits events as they happen", () =>
    Effect.gen(function* () {
      const events: Array<string> = []
      const { summary } = yield* collected(
        batchOf(2, {
          onFailure: "retry",
          concurrency: 1,
          protocol: failing(protocol, (episode) => (episode === 2 ? 1 : 0)),
          onEvent: (event) =>
            Effect.sync(() => void events.push("id" in event ? `${event._tag} ${event.id}` : event._tag)),
        }),
      )
      assert.deepStrictEqual(events, [
        "Started task-0#0",
        "Finished task-0#0",
        "Started task-0#1",
        "Retried task-0#1",
        "Finished task-0#1",
        "Started task-1#0",
        "Finished task-1#0",
        "Started task-1#1",
        "Finished task-1#1",
      ])
      assert.strictEqual(summary.failed, 0)
    }),
  )
})

describe("a failed episode", () => {
  const third = (times: number) => failing(protocol, (episode) => (episode === 3 ? times : 0))

  it.effect("is recorded with its reason, and stops none of the others", () =>
    Effect.gen(function* () {
      const { outcomes, summary } = yield* collected(batchOf(2, { protocol: third(1) }))
      assert.deepStrictEqual(
        outcomes.map(({ failure }) => failure),
        [null, null, { error: "ProtocolError", message: "task-1#0 can't be played" }, null],
      )
      assert.deepStrictEqual(outcomes[2].rollouts, [])
      assert.deepStrictEqual(summary, { requests: 4, rollouts: 3, failed: 1, dropped: 0, resumed: 0 })
    }),
  )

  it.effect("is retried with the same seeds", () =>
    Effect.gen(function* () {
      const untouched = yield* collected(batchOf(2))
      const twice = yield* collected(batchOf(2, { protocol: third(2), onFailure: "retry" }))
      assert.deepStrictEqual(twice, untouched)
      const once = yield* collected(batchOf(2, { protocol: third(2), onFailure: "retry", retries: 1 }))
      assert.strictEqual(once.outcomes[2].failure?.error, "ProtocolError")
      assert.strictEqual(once.summary.failed, 1)
    }),
  )

  it.effect("is dropped if configured so", () =>
    Effect.gen(function* () {
      const { outcomes, summary } = yield* collected(batchOf(2, { protocol: third(1), onFailure: "drop" }))
      assert.deepStrictEqual(
        outcomes.map(({ request }) => request.id),
        ["task-0#0", "task-0#1", "task-1#1"],
      )
      assert.deepStrictEqual(summary, { requests: 4, rollouts: 3, failed: 0, dropped: 1, resumed: 0 })
    }),
  )

  it.effect("may fail by its task or its env", () =>
    Effect.gen(function* () {
      const requests = [...RolloutRequest.forTasks({ size: 2 }, { seed: 1 })]
      const { outcomes } = yield* collected(batchOf(1, { requests }))
      assert.strictEqual(outcomes[1].failure?.error, "DatasetError")
      const broken = counting(1, {
        step: () => {
          throw new Error("broken")
        },
      })
      const tasks = { size: 1, digest: "broken", at: () => Effect.succeed(broken) }
      const [outcome] = (yield* collected(batchOf(1, { tasks }))).outcomes
      assert.strictEqual(outcome.failure?.error, EnvError.name)
    }),
  )

  it.effect("stops the batch if all others would fail, too, whatever `onFailure` says", () =>
    Effect.gen(function* () {
      for (const onFailure of ["record", "retry", "drop"] as const) {
        const unauthorised = () =>
          new LmError({ model: "m", reason: "unauthorised", attempts: 1, message: "the key is wrong" })
        let begun = 0
        const batch = batchOf(500, {
          onFailure,
          protocol: failing(protocol, (episode) => (episode === 3 ? 9 : 0), unauthorised),
          onEvent: ({ _tag }) => Effect.sync(() => void (begun += _tag === "Started" ? 1 : 0)),
        })
        const error = yield* Effect.flip(collected(batch))
        assert.strictEqual(error.message, "the key is wrong")
        assert.isBelow(begun, 1000)
      }
    }),
  )

  it.effect("by a defect is no outcome", () =>
    Effect.gen(function* () {
      const buggy = { name: "buggy", play: () => Effect.die(new Error("a bug")) }
      const exit = yield* Effect.exit(collected(batchOf(2, { protocol: buggy })))
      assert.isTrue(Exit.hasDies(exit))
    }),
  )
})

describe("the file of a batch", () => {
  it.effect("holds the outcomes, and its rollouts can be read separately", () =>
    Effect.gen(function* () {
      const batch = batchOf(3, { protocol: failing(protocol, (episode) => (episode === 2 ? 1 : 0)) })
      const path = yield* newPath
      const summary = yield* RolloutEngine.write(batch, path)
      const outcomes = yield* Stream.runCollect(RolloutEngine.read(path))
      const expected = yield* collected({ ...batch, protocol: failing(protocol, (episode) => (episode === 2 ? 1 : 0)) })
      assert.deepStrictEqual({ outcomes, summary }, expected)
      assert.deepStrictEqual(
        yield* Stream.runCollect(RolloutEngine.rollouts(path)),
        outcomes.flatMap(({ rollouts }) => rollouts),
      )
    }).pipe(Effect.scoped, Effect.provide(files)),
  )

  it.effect("has every outcome a tenth of a second later, in case the process is killed", () =>
    Effect.gen(function* () {
      const path = yield* newPath
      const opened = yield* Deferred.make<void>()
      const wait = (episode: number) =>
        episode < 3 ? Effect.void : Effect.andThen(Deferred.succeed(opened, undefined), Effect.never)
      yield* Effect.forkScoped(
        RolloutEngine.write(batchOf(3, { concurrency: 1, protocol: SingleAgent.make(parrot(wait)) }), path),
      )
      yield* Deferred.await(opened)
      assert.strictEqual(yield* textOf(path), "")
      yield* TestClock.adjust("100 millis")
      // The writing itself is outside of the test's clock.
      const text = yield* Effect.repeat(textOf(path), { until: (found) => found !== "" })
      assert.strictEqual(text.split("\n").length, 3)
    }).pipe(Effect.scoped, Effect.provide(files)),
  )

  it.effect("has all outcomes that were emitted before an interruption", () =>
    Effect.gen(function* () {
      const path = yield* newPath
      const reached = yield* Deferred.make<void>()
      const wait = (episode: number) =>
        episode < 4 ? Effect.void : Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
      const run = RolloutEngine.write(batchOf(3, { concurrency: 1, protocol: SingleAgent.make(parrot(wait)) }), path)
      yield* Effect.raceFirst(run, Deferred.await(reached))
      assert.strictEqual((yield* textOf(path)).split("\n").length, 4)
    }).pipe(Effect.scoped, Effect.provide(files)),
  )

  it.effect(
    "has whole lines after an interruption while it was written",
    () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* newPath
        const halfway = yield* Deferred.make<void>()
        const slow = writing(fs, (file, bytes) =>
          Effect.gen(function* () {
            yield* file.writeAll(bytes.subarray(0, 5000))
            yield* Deferred.succeed(halfway, undefined)
            yield* yields(100)
            yield* file.writeAll(bytes.subarray(5000))
          }),
        )
        // Enough to be written before the end.
        const long = counting(1, { begin: () => ({ state: 0, observation: "long ".repeat(40_000) }) })
        const batch = batchOf(3, { tasks: { size: 3, digest: "long", at: () => Effect.succeed(long) } })
        const run = RolloutEngine.write(batch, path)
        yield* Effect.raceFirst(Effect.provideService(run, FileSystem.FileSystem, slow), Deferred.await(halfway))
        const text = yield* textOf(path)
        assert.isTrue(text.endsWith("\n"))
        assert.isTrue((yield* written(batch)).startsWith(text))
      }).pipe(Effect.scoped, Effect.provide(files)),
    { tags: "slow" },
  )

  it.effect("has all rollouts of a request in its line, so that a cut leaves none of them alone", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const once = MultiTextEnv.make<null>({
        id: "once",
        type: "once",
        players: ["X", "O"],
        begin: () => ({ state: null, toMove: ["X", "O"], observations: { X: "go", O: "go" } }),
        step: () => ({ state: null, toMove: [], observations: {}, feedback: {}, terminated: true }),
      })
      const batch: RolloutEngine.RolloutBatch<MultiTextEnv.MultiTextEnv> = {
        tasks: { size: 3, digest: "once", at: () => Effect.succeed(once) },
        requests: RolloutRequest.forTasks({ size: 3 }, { seed: 1 }),
        protocol: MultiAgentSync.make(parrot()),
        concurrency: 2,
      }
      const path = yield* newPath
      const summary = yield* RolloutEngine.write(batch, path)
      assert.deepStrictEqual(summary, { requests: 3, rollouts: 6, failed: 0, dropped: 0, resumed: 0 })
      const rollouts = yield* Stream.runCollect(RolloutEngine.rollouts(path))
      assert.deepStrictEqual(
        rollouts.map(({ id, meta }) => [id.startsWith("task-"), meta.player]),
        Array.from({ length: 3 }, () => ["X", "O"].map((player) => [true, player])).flat(),
      )
      const text = yield* textOf(path)
      yield* fs.truncate(path, text.length - 100)
      const again = yield* RolloutEngine.write(batch, path)
      assert.deepStrictEqual(again, { ...summary, resumed: 2 })
      assert.strictEqual(yield* textOf(path), text)
    }).pipe(Effect.scoped, Effect.provide(files)),
  )

  const refusing = (text: string, batch: RolloutEngine.RolloutBatch) =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* newPath
      yield* fs.writeFileString(path, text)
      const error = yield* Effect.flip(RolloutEngine.write(batch, path))
      assert.strictEqual(yield* textOf(path), text)
      assert.notInclude(error.message, "\n")
      return error.message.replaceAll(path, "FILE")
    }).pipe(Effect.scoped)

  it.effect("of another batch stays unchanged, and is an error that explains the difference", () =>
    Effect.gen(function* () {
      const text = yield* written(batchOf(3))
      const of = (tasks = tasksOf(3), seed = 1, n = 2) =>
        batchOf(3, {
          tasks,
          requests: RolloutRequest.expand(RolloutRequest.forTasks({ size: 3 }, { seed, tags: { split: "train" } }), n),
        })
      assert.match(
        yield* refusing(text, of(tasksOf(4))),
        /^FILE:1: expected an outcome of the tasks \w{16}, found one of/,
      )
      assert.match(yield* refusing(text, of(tasksOf(3), 2)), /^FILE:1: expected an outcome of \{"id":"task-0#0"/)
      assert.match(yield* refusing(text, of(tasksOf(3), 1, 3)), /^FILE:3: expected an outcome of \{"id":"task-0#2"/)
      const fewer = { ...of(), requests: [...of().requests].slice(0, 4) }
      assert.match(
        yield* refusing(text, fewer),
        /^FILE:5: expected no more outcomes, found the outcome of "task-2#0"; the file belongs to another batch$/,
      )
      assert.match(
        yield* refusing(text, { ...of(tasksOf(3), 1, 1), onFailure: "drop" }),
        /^FILE:2: expected the outcome of "task-1#0" or a later request, found the outcome of "task-0#1"; the file belongs to another batch$/,
      )
      assert.strictEqual(
        yield* refusing(text, { ...of(), protocol: { ...protocol, name: "Other" } }),
        "FILE:1: expected an outcome by Other, found one by SingleAgent",
      )
    }).pipe(Effect.provide(files)),
  )

  it.effect("that is damaged stays unchanged, and is an error that names the line", () =>
    Effect.gen(function* () {
      const lines = (yield* written(batchOf(3))).split("\n")
      const damaged = [lines[0], lines[1].slice(0, 50), ...lines.slice(2)].join("\n")
      assert.match(yield* refusing(damaged, batchOf(3)), /^FILE:2: expected JSON, found/)
      const odd = [lines[0], lines[1].replace('"task":0', '"task":"0"'), ...lines.slice(2)].join("\n")
      assert.strictEqual(yield* refusing(odd, batchOf(3)), 'FILE:2: request.task: expected number, found "0"')
    }).pipe(Effect.provide(files)),
  )

  it.effect("that cannot be written stops the batch, which can be resumed", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* newPath
      const full = writing(fs, (file, bytes) =>
        Effect.andThen(file.writeAll(bytes.subarray(0, 5000)), Effect.asVoid(fs.readFile(`${path}/none`))),
      )
      const run = RolloutEngine.write(batchOf(3), path)
      const error = yield* Effect.flip(Effect.provideService(run, FileSystem.FileSystem, full))
      assert.include(error.message, `${path}: cannot write to it: `)
      assert.strictEqual((yield* textOf(path)).length, 5000)
      yield* run
      assert.strictEqual(yield* textOf(path), yield* written(batchOf(3)))
    }).pipe(Effect.scoped, Effect.provide(files)),
  )
})
