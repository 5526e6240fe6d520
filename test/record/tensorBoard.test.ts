import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { tensorBoard } from "../../src/record/tensorBoard.ts"
import { decode } from "../../src/record/tfevents.ts"
import { episode, recorded, started, update, validation } from "./events.ts"

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
          scalars: { "hyperparameters/gamma": 0.5, "hyperparameters/normalize/rewards": 1 },
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

  it.effect("takes records that stand in a config for data", () =>
    Effect.gen(function* () {
      const { run } = yield* recorded(() => Effect.succeed({ emit: () => Effect.void, flush: Effect.void }))
      const items = Array.from({ length: 200_000 }, (_, id) => ({ id, question: "?" }))
      const config = { trainDataset: { items, seed: 3 }, hidden: [64, 32] }
      yield* Effect.flatMap(tensorBoard(run, { ...started, config }), ({ flush }) => flush)
      assert.deepEqual(decode(yield* run.read("logs.tfevents")).events[1]?.scalars, {
        "hyperparameters/trainDataset/seed": 3,
        "hyperparameters/hidden/0": 64,
        "hyperparameters/hidden/1": 32,
      })
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
