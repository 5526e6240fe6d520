import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createHash } from "node:crypto"
import { doneTwice, trainerOf } from "./fakeRun.ts"
import { type Child, RunCommand } from "../../../src/command/sweep/child.ts"
import { runJob, sweepHandler } from "../../../src/command/sweep/job.ts"
import { CommandError } from "../../../src/command/CommandError.ts"

const time = "2026-01-31_12-00-00"
const path = `${time}/no-hash_train_environment_algorithm/CartPole-v1_ppo/0001`

const train = trainerOf(path)

/** A folder with the file of a training and the folder of a sweep, and the payload of its only run. */
const withSweep = <A, E, R>(body: (resultsDir: string, payload: object) => Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-rl-sweep-"))),
    (folder) => {
      const file = join(folder, "train.ts")
      writeFileSync(file, "export default 1\n")
      const resultsDir = join(folder, "results")
      mkdirSync(join(resultsDir, time), { recursive: true })
      const sha256 = createHash("sha256").update("export default 1\n").digest("hex")
      const part = { time, commit: "no-hash", population: {}, command: "effect run" }
      return body(resultsDir, { args: ["--seed", "1"], files: [{ path: file, sha256 }], resultsDir, path, part })
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
  )

const failureOf = (payload: object) =>
  Effect.gen(function* () {
    const answer = yield* (yield* sweepHandler).perform(payload)
    return answer._tag === "Failed" ? JSON.stringify(answer.failure) : assert.fail("it succeeded")
  })

describe("a run of a sweep on another machine", () => {
  it("is another job with other settings or another program", () => {
    const part = { time, commit: "no-hash", population: {}, command: "effect run" }
    const keyOf = (sha256: string, ...args: ReadonlyArray<string>) =>
      runJob.key({ args, files: [{ path: "train.ts", sha256 }], resultsDir: "results", path, part })
    const keys = [keyOf("1"), keyOf("1", "--total-steps", "100"), keyOf("1", "--total-steps", "200"), keyOf("2")]
    assert.strictEqual(new Set(keys).size, 4)
    assert.strictEqual(keyOf("1", "--total-steps", "100"), keys[1])
  })

  it.effect("is published once and whole, though two workers train it at once and a third is late", () =>
    withSweep((resultsDir, payload) =>
      Effect.gen(function* () {
        const handler = yield* sweepHandler
        const published = join(resultsDir, path)
        const one = yield* doneTwice(handler, payload, train)
        assert.deepStrictEqual(readdirSync(published).sort(), ["config.yaml", "metrics.json", "return.json"])
        assert.strictEqual(JSON.parse(readFileSync(join(published, "metrics.json"), "utf8")).run_dir, published)
        assert.deepStrictEqual(readdirSync(join(resultsDir, ".attempts")), [])
        // A worker that gets the job again gives the published result without training.
        const late = yield* Effect.provideService(handler.perform(payload), RunCommand, () => Effect.die("it trains"))
        assert.deepStrictEqual(late, one)
        assert.strictEqual(runJob.name, "run")
      }),
    ).pipe(Effect.provide(NodeServices.layer)),
  )

  it.effect("is resumed from a copy of what a lost worker left, and begins anew if the copy is unusable", () =>
    withSweep((resultsDir, payload) =>
      Effect.gen(function* () {
        const handler = yield* sweepHandler
        const lose = (name: string, checkpoint: string): void => {
          const run = join(resultsDir, ".attempts", `${time}_${name}`, path)
          mkdirSync(join(run, "checkpoints", checkpoint), { recursive: true })
          writeFileSync(join(run, "checkpoints", checkpoint, "runtime.json"), name)
          writeFileSync(join(run, "run.lock"), name)
        }
        lose("one", "step_000000000000512")
        lose("two", "step_000000000001024")
        lose("three", "step_000000000000001")
        const commands: Array<ReadonlyArray<string>> = []
        const command = (child: Child) =>
          Effect.suspend(() => {
            commands.push(child.args)
            const at = child.args.indexOf("--resume")
            if (at < 0) return Effect.succeed(train(child))
            const copy = child.args[at + 1]
            assert.strictEqual(copy, join(child.args[child.args.indexOf("--results-dir") + 1], path))
            assert.deepStrictEqual(readdirSync(copy), ["checkpoints"])
            const file = join(copy, "checkpoints", "step_000000000001024", "runtime.json")
            assert.strictEqual(readFileSync(file, "utf8"), "two")
            return Effect.fail(CommandError.run("the checkpoint is damaged"))
          })
        const answer = yield* Effect.provideService(handler.perform(payload), RunCommand, command)
        assert.strictEqual(answer._tag, "Done", JSON.stringify(answer))
        assert.deepStrictEqual(
          commands.map((args) => args.includes("--resume")),
          [true, false],
        )
        assert.deepStrictEqual(readdirSync(join(resultsDir, path)).sort(), [
          "config.yaml",
          "metrics.json",
          "return.json",
        ])
        // The attempts of lost workers stay as they are until the sweep is finished: their workers may come back.
        assert.lengthOf(readdirSync(join(resultsDir, ".attempts")), 3)
      }),
    ).pipe(Effect.provide(NodeServices.layer)),
  )

  it.effect("that is handed back leaves its folder for the next worker", () =>
    withSweep((resultsDir, payload) =>
      Effect.gen(function* () {
        const handler = yield* sweepHandler
        const begun = yield* Deferred.make<void>()
        const stopped = (child: Child) =>
          Effect.gen(function* () {
            const run = join(child.args[child.args.indexOf("--results-dir") + 1], path)
            mkdirSync(join(run, "checkpoints", "step_000000000000512"), { recursive: true })
            yield* Deferred.succeed(begun, undefined)
            return yield* Effect.never
          })
        const fiber = yield* Effect.forkChild(Effect.provideService(handler.perform(payload), RunCommand, stopped))
        yield* Deferred.await(begun)
        yield* Fiber.interrupt(fiber)
        let isResumed = false
        const next = (child: Child) =>
          Effect.sync(() => {
            isResumed = child.args.includes("--resume")
            return train(child)
          })
        yield* Effect.provideService(handler.perform(payload), RunCommand, next)
        assert.isTrue(isResumed)
        assert.lengthOf(readdirSync(join(resultsDir, ".attempts")), 1)
      }),
    ).pipe(Effect.provide(NodeServices.layer)),
  )

  it.effect("leaves nothing if it fails, and is refused where the files or the results folder are other ones", () =>
    withSweep((resultsDir, payload) =>
      Effect.gen(function* () {
        const broken = Effect.provideService(failureOf(payload), RunCommand, () =>
          Effect.fail(CommandError.run("it diverged")),
        )
        assert.include(yield* broken, "it diverged")
        assert.deepStrictEqual(readdirSync(join(resultsDir, ".attempts")), [])
        assert.deepStrictEqual(readdirSync(join(resultsDir, time)), [])
        const file = join(resultsDir, "..", "train.ts")
        writeFileSync(file, "export default 2\n")
        assert.match(yield* failureOf(payload), /train\.ts: expected the file with which the run was started/)
        rmSync(file)
        assert.match(yield* failureOf(payload), /a worker found no such file/)
        writeFileSync(file, "export default 1\n")
        rmSync(join(resultsDir, time), { recursive: true })
        assert.match(yield* failureOf(payload), /mount the same results folder on all machines/)
      }),
    ).pipe(Effect.provide(NodeServices.layer)),
  )
})
