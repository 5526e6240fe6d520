import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { system, type SystemFigures } from "../../../src/run/record/system.ts"
import { episode, recorded, started, update } from "./events.ts"

const idle: SystemFigures = { rss: 100, heap: 60, buffers: 20, cpuSeconds: 5 }

const linesOf = (text: string): ReadonlyArray<Record<string, unknown>> =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))

describe("the sink for system figures", () => {
  it.effect("writes memory, the share of the CPU and the speed since the sample before", () =>
    Effect.gen(function* () {
      let now = idle
      const { run, emit, flush } = yield* recorded(system(() => now))
      yield* TestClock.adjust("1 second")
      now = { rss: 200, heap: 70, buffers: 30, cpuSeconds: 6.5 }
      yield* emit([episode({ step: 400 }), update(500), { _tag: "Note", message: "nothing to do with steps" }])
      yield* TestClock.adjust("2 seconds")
      now = { ...now, cpuSeconds: 7.5 }
      // A checkpoint of an earlier step is written while the run goes on.
      yield* emit([update(1500), { _tag: "CheckpointSaved", step: 500, path: "step_500" }])
      yield* flush
      assert.deepEqual(linesOf(yield* run.readText("system.jsonl")), [
        {
          timestamp: "1970-01-01T00:00:01.000Z",
          step_index: 500,
          seconds: 1,
          steps_per_second: 500,
          rss: 200,
          heap: 70,
          buffers: 30,
          cpu: 1.5,
        },
        {
          timestamp: "1970-01-01T00:00:03.000Z",
          step_index: 1500,
          seconds: 3,
          steps_per_second: 500,
          rss: 200,
          heap: 70,
          buffers: 30,
          cpu: 0.5,
        },
      ])
    }),
  )

  it.effect(
    "samples long runs less and less often, and the end in any case",
    () =>
      Effect.gen(function* () {
        const { run, emit, flush } = yield* recorded(system(() => idle))
        const hours = 1
        for (let tenth = 1; tenth <= hours * 36_000; tenth++) {
          yield* TestClock.adjust("100 millis")
          yield* emit([update(tenth)])
        }
        yield* TestClock.adjust("1 millis")
        yield* emit([{ _tag: "RunEnded", step: 400_000, episodes: 0, reason: "finished", message: null }])
        yield* flush
        const lines = linesOf(yield* run.readText("system.jsonl"))
        assert.isAbove(lines.length, 500)
        assert.isBelow(lines.length, 800)
        assert.isBelow(Number(lines[0].seconds), 0.5)
        assert.strictEqual(lines.at(-1)?.step_index, 400_000)
      }),
    { tags: "slow" },
  )

  it.effect("goes on in the file of a run that is resumed, at the step that it resumes from", () =>
    Effect.gen(function* () {
      const { run, emit, flush } = yield* recorded(system(() => idle))
      yield* TestClock.adjust("1 second")
      yield* emit([update(1000)])
      yield* flush
      const again = yield* system(() => idle)(run, { ...started, resumedFromStep: 800 })
      yield* TestClock.adjust("1 second")
      yield* again.emit([update(1000)])
      yield* again.flush
      assert.deepEqual(
        linesOf(yield* run.readText("system.jsonl")).map((line) => [line.seconds, line.steps_per_second]),
        [
          [1, 1000],
          [1, 200],
        ],
      )
    }),
  )
})
