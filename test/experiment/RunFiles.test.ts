import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { disk, identity, memoryRun, temporaryRun } from "./disk.ts"

const runs = { "on disk": temporaryRun, "in memory": memoryRun }

for (const [where, open] of Object.entries(runs)) {
  describe(`the files of a run ${where}`, () => {
    it.effect("know what grows, and how far it has", () =>
      Effect.gen(function* () {
        const run = yield* open
        assert.deepEqual(run.identity, identity)
        assert.isFalse(run.resumed)
        assert.deepEqual(yield* run.appendedSizes, {})
        yield* run.append("scores/train/scores.jsonl", "12345\n")
        yield* run.append("scores/val/3_seen_episodes_scores.jsonl", "1\n")
        yield* run.append("logs.tfevents", "123")
        yield* run.append("run.log", "anything")
        yield* run.write("config.yaml", "anything")
        assert.deepEqual(yield* run.appendedSizes, {
          "scores/train/scores.jsonl": 6,
          "scores/val/3_seen_episodes_scores.jsonl": 2,
          "logs.tfevents": 3,
        })
      }).pipe(Effect.provide(disk)),
    )

    it.effect("are cut back to such a moment; the log isn't", () =>
      Effect.gen(function* () {
        const run = yield* open
        yield* run.append("scores/train/scores.jsonl", "12345\n")
        yield* run.append("run.log", "then\n")
        const sizes = yield* run.appendedSizes
        yield* run.append("scores/train/scores.jsonl", "67890\ntorn")
        yield* run.append("scores/val/3_seen_episodes_scores.jsonl", "1\n")
        yield* run.append("logs.tfevents", "123")
        yield* run.append("run.log", "now\n")
        yield* run.cutBack(sizes)
        assert.strictEqual(yield* run.readText("scores/train/scores.jsonl"), "12345\n")
        assert.deepEqual(yield* run.list("scores/val"), [])
        assert.isFalse(yield* run.exists("logs.tfevents"))
        assert.strictEqual(yield* run.readText("run.log"), "then\nnow\n")
      }).pipe(Effect.provide(disk)),
    )

    it.effect("refuse to be cut to what they have not got, and stay as they are", () =>
      Effect.gen(function* () {
        const run = yield* open
        yield* run.append("scores/train/scores.jsonl", "12345\n")
        yield* run.append("logs.tfevents", "123")
        const error = yield* Effect.flip(run.cutBack({ "scores/train/scores.jsonl": 2, "logs.tfevents": 4 }))
        const where = `${run.directory}/logs.tfevents`
        assert.strictEqual(error.message, `${where}: expected at least 4 bytes, as its checkpoint says, found 3`)
        assert.strictEqual(yield* run.size("scores/train/scores.jsonl"), 6)
      }).pipe(Effect.provide(disk)),
    )
  })
}
