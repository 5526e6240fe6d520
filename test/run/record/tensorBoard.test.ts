import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { ByteWriter } from "../../../src/base/formats/ByteWriter.ts"
import { writeStart } from "../../../src/run/record/hparams.ts"
import { tensorBoard } from "../../../src/run/record/tensorBoard.ts"
import { decode } from "../../../src/base/formats/tfevents.ts"
import { episode, recorded, started, update, validation } from "./events.ts"

/** The metadata of settings, whose values are those of `started`. */
const startOf = (seconds: number, names: ReadonlyArray<string>): Uint8Array => {
  const to = new ByteWriter()
  const values = { "algorithm.name": "ppo", gamma: 0.5, "normalize.rewards": true }
  assert.deepEqual(Object.keys(values), names)
  writeStart(to, seconds, values)
  return decode(to.written).events[0].metadata?.["_hparams_/session_start_info"] ?? new Uint8Array(0)
}

describe("the sink for TensorBoard", () => {
  it.effect("writes the config's numbers, every update's metrics and every validation", () =>
    Effect.gen(function* () {
      const { run, emit, flush } = yield* recorded(tensorBoard)
      yield* TestClock.adjust("2 seconds")
      yield* emit([episode(), update(512, { "losses/entropy": 0.5 }), validation])
      yield* flush
      assert.deepEqual(decode(yield* run.read("logs.tfevents")).events, [
        { wallSeconds: 0, step: 0, fileVersion: "brain.Event:2", scalars: {} },
        {
          wallSeconds: 0,
          step: 0,
          scalars: {},
          metadata: { "_hparams_/session_start_info": startOf(0, ["algorithm.name", "gamma", "normalize.rewards"]) },
        },
        { wallSeconds: 2, step: 512, scalars: { "losses/entropy": 0.5 } },
        {
          wallSeconds: 2,
          step: 512,
          scalars: { "validation/score": 2, "validation/score_std": 1, "validation/episodic_length": 255 },
        },
      ])
    }),
  )

  it.effect("tells how a run ended, unless it was interrupted, for it may go on", () =>
    Effect.gen(function* () {
      for (const [reason, status] of [
        ["finished", 1],
        ["failed", 2],
        ["interrupted", undefined],
        ["stopped", undefined],
      ] as const) {
        const { run, emit, flush } = yield* recorded(tensorBoard)
        yield* emit([{ _tag: "RunEnded", step: 1, episodes: 0, reason, message: null }])
        yield* flush
        const last = decode(yield* run.read("logs.tfevents")).events.at(-1)
        const end = last?.metadata?.["_hparams_/session_end_info"]
        // Behind it are a field's key and the time.
        assert.strictEqual(end?.at(-10), status, reason)
      }
    }),
  )

  it.effect("goes on in the file of a run that is resumed", () =>
    Effect.gen(function* () {
      const { run, emit, flush } = yield* recorded(tensorBoard)
      yield* emit([update(1, { a: 1 })])
      yield* flush
      const again = yield* tensorBoard(run, { ...started, resumedFromStep: 1 })
      yield* again.emit([update(2, { a: 2 })])
      yield* again.flush
      const { events } = decode(yield* run.read("logs.tfevents"))
      assert.deepEqual(
        events.map(({ step, fileVersion }) => [step, fileVersion]),
        [
          [0, "brain.Event:2"],
          [0, undefined],
          [1, undefined],
          [2, undefined],
        ],
      )
    }),
  )
})
