import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { scores } from "../../../src/run/record/scores.ts"
import { timestamp } from "../../../src/run/record/timestamp.ts"
import { episode, recorded, update, validation } from "./events.ts"

describe("the sink of scores", () => {
  it.effect("writes a line an episode", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2026, 0, 31, 12, 0, 0, 250))
      const { run, emit, flush } = yield* recorded(scores)
      yield* emit([
        episode(),
        update(512),
        episode({ episode: 1, return: -0.25, terminated: false, truncated: true, truncationReason: "max_steps" }),
      ])
      yield* flush
      assert.strictEqual(
        yield* run.readText("scores/train/scores.jsonl"),
        '{"timestamp":"2026-01-31T12:00:00.250000Z","mode":"train","episode_index":0,"step_index":128,"score":21.5,' +
          '"episode_cum_score":21.5,"env_id":"CartPole-v1","env_type":"CartPole-v1","env_index":3,"episode_length":21,' +
          '"terminated":true,"truncated":false,"truncation_reason":null}\n' +
          '{"timestamp":"2026-01-31T12:00:00.250000Z","mode":"train","episode_index":1,"step_index":128,"score":-0.25,' +
          '"episode_cum_score":-0.25,"env_id":"CartPole-v1","env_type":"CartPole-v1","env_index":3,"episode_length":21,' +
          '"terminated":false,"truncated":true,"truncation_reason":"max_steps"}\n',
      )
    }),
  )

  it.effect("writes a file a validation, named by the episodes seen, at once", () =>
    Effect.gen(function* () {
      const { run, emit } = yield* recorded(scores)
      yield* emit([validation])
      const lines = (yield* run.readText("scores/val/12_seen_episodes_scores.jsonl")).trimEnd().split("\n")
      assert.deepEqual(
        lines.map((line) => JSON.parse(line)),
        [0, 1].map((index) => ({
          timestamp: "1970-01-01T00:00:00.000000Z",
          mode: "val",
          episode_index: index,
          step_index: 512,
          score: [1, 3][index],
          episode_cum_score: [1, 3][index],
          env_id: "CartPole-v1",
          env_type: "CartPole-v1",
          episode_length: [10, 500][index],
          terminated: index === 0,
          truncated: index === 1,
        })),
      )
    }),
  )

  it.effect("names the env of each validation episode", () =>
    Effect.gen(function* () {
      const { run, emit } = yield* recorded(scores)
      const [one, other] = validation.episodes
      yield* emit([
        {
          ...validation,
          episodes: [
            { ...one, env: "hills" },
            { ...other, env: "lakes" },
          ],
        },
      ])
      const lines = (yield* run.readText("scores/val/12_seen_episodes_scores.jsonl")).trimEnd().split("\n")
      assert.deepEqual(
        lines.map((line) => JSON.parse(line)).map(({ env_id, env_type }) => [env_id, env_type]),
        [
          ["hills", "hills"],
          ["lakes", "lakes"],
        ],
      )
    }),
  )

  it.effect("has no number that JSON cannot say", () =>
    Effect.gen(function* () {
      const { run, emit, flush } = yield* recorded(scores)
      yield* emit([episode({ return: NaN })])
      yield* flush
      assert.isNull(JSON.parse(yield* run.readText("scores/train/scores.jsonl")).score)
    }),
  )

  it.effect("writes in large pieces: after a quarter of a second, or when much has come together", () =>
    Effect.gen(function* () {
      const { run, emit } = yield* recorded(scores)
      const lines = Effect.gen(function* () {
        const exists = yield* run.exists("scores/train/scores.jsonl")
        return exists ? (yield* run.readText("scores/train/scores.jsonl")).split("\n").length - 1 : 0
      })
      yield* emit([episode()])
      yield* TestClock.adjust("249 millis")
      yield* emit([episode()])
      assert.strictEqual(yield* lines, 0)
      yield* TestClock.adjust("1 millis")
      yield* emit([episode()])
      assert.strictEqual(yield* lines, 3)
      yield* emit(Array.from({ length: 2000 }, () => episode()))
      assert.strictEqual(yield* lines, 2003)
    }),
  )
})

it("a timestamp is ISO 8601 with microseconds", () => {
  assert.strictEqual(timestamp(1), "1970-01-01T00:00:00.001000Z")
})
