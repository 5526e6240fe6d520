import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { RunStoreError } from "../../../src/run/store/RunStoreError.ts"
import { Recorder, type Sink } from "../../../src/run/record/Recorder.ts"
import type { RunEvent } from "../../../src/run/record/RunEvent.ts"
import { runLog } from "../../../src/run/record/runLog.ts"
import { scores } from "../../../src/run/record/scores.ts"
import { tensorBoard } from "../../../src/run/record/tensorBoard.ts"
import { decode } from "../../../src/base/formats/tfevents.ts"
import { disk, memoryRun, temporaryRun } from "../store/disk.ts"
import { episode, started, update } from "./events.ts"

const note = (message: string): RunEvent => ({ _tag: "Note", message })
const messages = (events: ReadonlyArray<RunEvent>) => events.map((event) => ("message" in event ? event.message : null))

/** A sink that keeps what it is given, after something else. */
const keeping = (before: Effect.Effect<void, RunStoreError> = Effect.void) => {
  const kept: Array<string | null> = []
  const sink: Sink = () =>
    Effect.succeed({
      emit: (events) =>
        Effect.andThen(
          before,
          Effect.sync(() => void kept.push(...messages(events))),
        ),
      flush: Effect.sync(() => void kept.push("flushed")),
    })
  return { kept, sink }
}

const startWith = Effect.fnUntraced(function* (...sinks: ReadonlyArray<Sink>) {
  const run = yield* memoryRun
  const recorder = yield* Recorder.pipe(Effect.provide(Recorder.layer(...sinks)))
  return yield* recorder.start(run, started)
})

describe("a recorder", () => {
  it.effect("gives every batch to every sink, in order, and flushes them when the run's scope closes", () =>
    Effect.gen(function* () {
      const [one, two] = [keeping(), keeping(Effect.yieldNow)]
      const scope = yield* Scope.make()
      const { emit } = yield* Scope.provide(startWith(one.sink, two.sink), scope)
      yield* emit([note("a"), note("b")])
      yield* emit([note("c")])
      yield* Scope.close(scope, Exit.void)
      for (const { kept } of [one, two]) assert.deepEqual(kept, ["a", "b", "c", "flushed"])
    }),
  )

  it.effect("waits for a slow sink", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const slow = keeping(Deferred.await(gate))
      const { emit } = yield* startWith(slow.sink)
      const emitting = yield* Effect.forkChild(emit([note("a")]))
      yield* Effect.yieldNow
      assert.isUndefined(emitting.pollUnsafe())
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(emitting)
      assert.deepEqual(slow.kept, ["a"])
    }),
  )

  it.effect("keeps batches of many fibers whole and in the same order for all sinks", () =>
    Effect.gen(function* () {
      const [one, two] = [keeping(Effect.yieldNow), keeping()]
      const { emit } = yield* startWith(one.sink, two.sink)
      const batches = Array.from({ length: 20 }, (_, index) => [note(`${index}a`), note(`${index}b`)])
      yield* Effect.forEach(batches, emit, { concurrency: "unbounded" })
      assert.strictEqual(one.kept.length, 40)
      assert.deepEqual(one.kept, two.kept)
      for (let at = 0; at < 40; at += 2) assert.strictEqual(one.kept[at]?.slice(0, -1), one.kept[at + 1]?.slice(0, -1))
    }),
  )

  it.effect("gives a batch to all even when one of them fails, and fails with that", () =>
    Effect.gen(function* () {
      const full = new RunStoreError({ path: "x", operation: "append to", message: "no space left on device" })
      const [broken, good] = [keeping(Effect.fail(full)), keeping()]
      const { emit } = yield* startWith(broken.sink, good.sink)
      assert.strictEqual(yield* Effect.flip(emit([note("a")])), full)
      assert.deepEqual(good.kept, ["a"])
    }),
  )

  for (const [where, open] of Object.entries({ "on disk": temporaryRun, "in memory": memoryRun })) {
    it.effect(`loses nothing ${where} when the run is interrupted`, () =>
      Effect.gen(function* () {
        const run = yield* open
        const recorder = yield* Recorder.pipe(Effect.provide(Recorder.layer(scores, tensorBoard, runLog)))
        const underWay = yield* Deferred.make<void>()
        const training = Effect.gen(function* () {
          const { emit } = yield* recorder.start(run, started)
          // The first are written at once, being many; the last wait for more.
          yield* emit(Array.from({ length: 2000 }, (_, index) => episode({ episode: index })))
          yield* emit([episode({ episode: 2000 }), update(1, { a: 1 }), note("the last")])
          yield* Deferred.succeed(underWay, undefined)
          return yield* Effect.never
        })
        const fiber = yield* Effect.forkChild(Effect.scoped(training))
        yield* Deferred.await(underWay)
        yield* Fiber.interrupt(fiber)
        assert.match(yield* run.readText("scores/train/scores.jsonl"), /"episode_index":2000,[^\n]*\n$/)
        assert.deepEqual(decode(yield* run.read("logs.tfevents")).events.at(-1)?.scalars, { a: 1 })
        assert.match(yield* run.readText("run.log"), /the last\n$/)
      }).pipe(Effect.provide(disk)),
    )
  }

  it.effect("can be silent", () =>
    Effect.gen(function* () {
      const run = yield* memoryRun
      const recorder = yield* Recorder.pipe(Effect.provide(Recorder.layerSilent))
      const { emit, flush } = yield* recorder.start(run, started)
      yield* emit([episode()])
      yield* flush
      assert.deepEqual(yield* run.list(""), [])
    }),
  )
})
