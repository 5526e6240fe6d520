import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createHash } from "node:crypto"
import { toSnakeCase } from "../../../src/config/Config.ts"
import { prettyJson } from "../../../src/config/text.ts"
import { type Child, RunCommand, RunFailed } from "../../../src/cli/sweep/child.ts"
import { runJob, sweepHandler } from "../../../src/cli/sweep/job.ts"

const time = "2026-01-31_12-00-00"
const path = `${time}/no-hash_train_environment_algorithm/CartPole-v1_ppo/0001`

const result = {
  steps: 8,
  episodes: 1,
  meanScore: null,
  meanReturn: null,
  validation: null,
  failedValidations: 0,
  digest: "d".repeat(64),
  wallSeconds: 1,
  stepsPerSecond: 8,
}

/** Stands for `effect run`: writes a run of three files, and prints its result. */
const train = ({ args }: Child): string => {
  const runDir = join(args[args.indexOf("--results-dir") + 1], path)
  mkdirSync(runDir, { recursive: true })
  writeFileSync(join(runDir, "config.yaml"), "kind: training\n")
  writeFileSync(join(runDir, "metrics.json"), prettyJson(toSnakeCase({ runDir, ...result })))
  writeFileSync(join(runDir, "return.json"), "[]")
  return JSON.stringify({ runDir, ...result })
}

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
  it.effect("is published once and whole, though two workers train it at once and a third is late", () =>
    withSweep((resultsDir, payload) =>
      Effect.gen(function* () {
        const handler = yield* sweepHandler
        const published = join(resultsDir, path)
        const bothTrain = yield* Deferred.make<void>()
        let trained = 0
        const command = (child: Child) =>
          Effect.gen(function* () {
            if (++trained === 2) yield* Deferred.succeed(bothTrain, undefined)
            yield* Deferred.await(bothTrain)
            return train(child)
          })
        const [one, other] = yield* Effect.all([handler.perform(payload), handler.perform(payload)], {
          concurrency: "unbounded",
        }).pipe(Effect.provideService(RunCommand, command))
        assert.strictEqual(trained, 2)
        assert.strictEqual(one._tag, "Done", JSON.stringify(one))
        assert.deepStrictEqual(other, one)
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

  it.effect("leaves nothing if it fails, and is refused where the files or the results folder are other ones", () =>
    withSweep((resultsDir, payload) =>
      Effect.gen(function* () {
        const broken = Effect.provideService(failureOf(payload), RunCommand, () =>
          Effect.fail(new RunFailed({ message: "it diverged" })),
        )
        assert.include(yield* broken, "it diverged")
        assert.deepStrictEqual(readdirSync(join(resultsDir, ".attempts")), [])
        assert.deepStrictEqual(readdirSync(join(resultsDir, time)), [])
        const file = join(resultsDir, "..", "train.ts")
        writeFileSync(file, "export default 2\n")
        assert.match(yield* failureOf(payload), /train\.ts: expected the file with which the sweep was started/)
        rmSync(file)
        assert.match(yield* failureOf(payload), /a worker found no such file/)
        writeFileSync(file, "export default 1\n")
        rmSync(join(resultsDir, time), { recursive: true })
        assert.match(yield* failureOf(payload), /mount the same results folder on all machines/)
      }),
    ).pipe(Effect.provide(NodeServices.layer)),
  )
})
