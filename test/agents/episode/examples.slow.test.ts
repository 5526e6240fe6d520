import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { NodeFileSystem } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import type { Rollout } from "../../../src/agents/episode/Rollout.ts"
import * as Rollouts from "../../../src/agents/episode/rollouts/Rollouts.ts"
import * as Samples from "../../../src/agents/episode/samples/samples.ts"
import { examplePath } from "../../house/examplePath.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))

/** Runs an example as its first lines say, and reads what it wrote. */
const ran = (name: string) =>
  Effect.gen(function* () {
    const directory = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-rl-example-"))),
      (made) => Effect.sync(() => rmSync(made, { recursive: true })),
    )
    const run = (to: string) =>
      execFileSync(process.execPath, [examplePath(`${name}.ts`), join(directory, to)], { cwd: root, encoding: "utf8" })
    const text = run("first")
    run("second")
    for (const file of ["rollouts.jsonl", "samples.jsonl"]) {
      assert.strictEqual(
        readFileSync(join(directory, "first", file), "utf8"),
        readFileSync(join(directory, "second", file), "utf8"),
      )
    }
    const rollouts: ReadonlyArray<Rollout> = yield* Stream.runCollect(
      Rollouts.read(join(directory, "first/rollouts.jsonl")),
    )
    const samples: ReadonlyArray<Samples.Sample> = yield* Stream.runCollect(
      Samples.read(join(directory, "first/samples.jsonl")),
    )
    return { text, rollouts, samples }
  }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))

describe("examples", () => {
  it.live(
    "delegation: child and parent rollouts are both in the samples, with their credit",
    () =>
      Effect.gen(function* () {
        const { text, rollouts, samples } = yield* ran("delegation")
        assert.deepStrictEqual(
          rollouts.map(({ id, totalReward, meta }) => [id, meta.parentRolloutId, meta.depth, totalReward]),
          [
            ["larger", null, 0, 1],
            ["larger/sub/0", "larger", 1, 0],
            ["larger/sub/1", "larger", 1, 0],
          ],
        )
        assert.deepStrictEqual(
          samples.map(({ rolloutId, parentRolloutId, credit, stepIds }) => [
            rolloutId,
            parentRolloutId,
            credit,
            stepIds.length,
          ]),
          [
            ["larger", null, 1, 2],
            ["larger/sub/0", "larger", 0.5, 1],
            ["larger/sub/1", "larger", 0.5, 1],
          ],
        )
        for (const { logprobs, actionMask } of samples) {
          assert.isNotNull(logprobs)
          assert.include(actionMask, 1)
        }
        assert.include(text, "larger/sub/1 for larger: depth 1")
      }),
    60_000,
  )

  it.live(
    "self-play: each game has a rollout for X and one for O, and a sample a move",
    () =>
      Effect.gen(function* () {
        const { text, rollouts, samples } = yield* ran("self-play")
        assert.strictEqual(rollouts.length, 40)
        for (let game = 0; game < 20; game++) {
          const [x, o] = rollouts.slice(2 * game, 2 * game + 2)
          assert.deepStrictEqual([x.meta.player, o.meta.player], ["X", "O"])
          assert.deepStrictEqual([x.meta.groupId, o.meta.groupId], [`game-${game}`, `game-${game}`])
          // A point for the winner, or half a point for both.
          assert.strictEqual(x.totalReward + o.totalReward, 1)
          assert.isTrue(x.ending.terminated && o.ending.terminated)
        }
        assert.strictEqual(
          samples.length,
          rollouts.reduce((sum, { length }) => sum + length, 0),
        )
        assert.include(text, `${samples.length} moves to learn from`)
        assert.isAbove(new Set(rollouts.map(({ totalReward }) => totalReward)).size, 1)
      }),
    60_000,
  )
})
