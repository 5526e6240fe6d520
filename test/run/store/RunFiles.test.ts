import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { hashPrefix } from "../../../src/run/store/appended.ts"
import { disk, identity, memoryRun, temporaryRun } from "./disk.ts"

const runs = { "on disk": temporaryRun, "in memory": memoryRun }

for (const [where, open] of Object.entries(runs)) {
  describe(`the files of a run ${where}`, () => {
    it.effect("know what grows, and how far it has", () =>
      Effect.gen(function* () {
        const run = yield* open
        assert.deepEqual(run.identity, identity)
        assert.isFalse(run.resumed)
        assert.deepEqual(yield* run.appendedAt(yield* run.sizes), { sizes: {}, digests: {} })
        yield* run.append("scores/train/scores.jsonl", "12345\n")
        yield* run.append("scores/val/3_seen_episodes_scores.jsonl", "1\n")
        yield* run.append("logs.tfevents", "123")
        yield* run.append("rollouts/train/samples.jsonl", "{}\n")
        yield* run.append("run.log", "anything")
        yield* run.write("config.yaml", "anything")
        assert.deepEqual(yield* run.sizes, {
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
        const moment = yield* run.appendedAt(yield* run.sizes)
        yield* run.append("scores/train/scores.jsonl", "67890\ntorn")
        yield* run.append("scores/val/3_seen_episodes_scores.jsonl", "1\n")
        yield* run.append("logs.tfevents", "123")
        yield* run.append("run.log", "now\n")
        yield* run.cutBack(moment)
        assert.strictEqual(yield* run.readText("scores/train/scores.jsonl"), "12345\n")
        assert.deepEqual(yield* run.list("scores/val"), [])
        assert.isFalse(yield* run.exists("logs.tfevents"))
        assert.strictEqual(yield* run.readText("run.log"), "then\nnow\n")
      }).pipe(Effect.provide(disk)),
    )

    it.effect("tell which of them are no longer what they were, and stay as they are", () =>
      Effect.gen(function* () {
        const run = yield* open
        const scores = "scores/train/scores.jsonl"
        const validation = "scores/val/3_seen_episodes_scores.jsonl"
        yield* run.append(scores, "12345\n")
        yield* run.append(validation, "1\n2\n")
        yield* run.write("memories/memory_3.jsonl", "{}\n")
        yield* run.append("logs.tfevents", "123")
        const moment = yield* run.appendedAt(yield* run.sizes)
        yield* run.append(scores, "67890\n")
        assert.deepEqual(yield* run.changedSince(moment), [])

        yield* run.write(validation, "1\n3\n")
        yield* run.write("memories/memory_3.jsonl", "[]\n")
        yield* run.remove("logs.tfevents")
        assert.deepEqual(yield* run.changedSince(moment), [
          { file: validation, problem: "its first 4 bytes were changed" },
          { file: "memories/memory_3.jsonl", problem: "its first 3 bytes were changed" },
          { file: "logs.tfevents", problem: "expected at least 3 bytes, found 0" },
        ])
        assert.strictEqual(yield* run.readText(scores), "12345\n67890\n")
        assert.deepEqual(yield* run.changedSince({ sizes: { [validation]: 4 }, digests: {} }), [
          { file: validation, problem: "the checkpoint has no digest of it" },
        ])
      }).pipe(Effect.provide(disk)),
    )

    it.effect(
      "are hashed by blocks, and each byte is read once as they grow",
      () =>
        Effect.gen(function* () {
          const run = yield* open
          const file = "scores/train/scores.jsonl"
          const bytes = Uint8Array.from({ length: 2_500_000 }, (_, at) => (at * at) % 251)
          const parts = new Array<number>()
          const tree: Parameters<typeof hashPrefix>[0] = {
            stream: (path, part) => {
              parts.push(part?.offset ?? 0)
              return run.stream(path, part)
            },
          }
          yield* run.write(file, bytes)
          const before = yield* hashPrefix(tree, file, 1_500_000)
          const after = yield* hashPrefix(tree, file, bytes.length, before)
          assert.deepEqual(parts, [0, 1_500_000])
          assert.deepEqual(after, yield* hashPrefix(tree, file, bytes.length))
          assert.notStrictEqual(after.digest, before.digest)
          assert.deepEqual(before, yield* hashPrefix(tree, file, 1_500_000, after))
          // A whole number of blocks leaves nothing to read.
          const whole = yield* hashPrefix(tree, file, 2 << 20, after)
          assert.strictEqual(whole.blocks.length, 2)
          assert.strictEqual(whole.digest, (yield* hashPrefix(tree, file, 2 << 20)).digest)
          yield* run.write(file, bytes.with(7, 255))
          assert.notStrictEqual((yield* hashPrefix(tree, file, bytes.length)).digest, after.digest)
        }).pipe(Effect.provide(disk)),
      { tags: "slow" },
    )
  })
}
