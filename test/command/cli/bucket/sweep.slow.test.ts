import { createHash } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { RunCommand } from "../../../../src/command/sweep/child.ts"
import { sweepHandler } from "../../../../src/command/sweep/job.ts"
import { hasPostgres, startPostgres } from "../../../spread/cluster/postgres.ts"
import { interrupted, killAll, startWorker } from "../../../spread/cluster/workers.ts"
import { effect, program, start, withFolder } from "../effect.ts"
import { doneTwice, trainerOf } from "../../sweep/fakeRun.ts"
import { bucketServer } from "./inBucket.ts"

const place = "s3://runs/team"
const seeds = ["run", "train.ts", "--seeds", "1..3", "--json"]

const digestsIn = (stdout: string): ReadonlyArray<string> =>
  JSON.parse(stdout).seeds.map(({ digest }: { readonly digest: string }) => digest)

const seedOf = (path: string): string | undefined => /\/(\d{4})\//.exec(path)?.[1]

if (!hasPostgres) console.warn("sweep.slow.test.ts: postgresql is not installed here, so clusters are NOT tested")

describe("a sweep in a bucket", () => {
  it.live("saves the runs that it saves on disk, and after a failure trains only what is missing", () =>
    Effect.gen(function* () {
      const { failing, requests } = yield* bucketServer()
      yield* Effect.promise(() =>
        withFolder(async (folder) => {
          writeFileSync(join(folder, "train.ts"), program("checkpoint: { everySteps: 1024 }"))
          const planned = await effect([...seeds, "--dry-run", "--results-dir", place], folder)
          assert.strictEqual(planned.code, 0, planned.stderr)
          assert.match(JSON.parse(planned.stdout).runs[2].path, /^s3:\/\/runs\/team\/\{TIME\}\/.+\/0003$/)

          failing(({ method, path }) =>
            method === "PUT" && /\/0002\/.*manifest\.json$/.test(path)
              ? { status: 507, code: "XMinioStorageFull" }
              : undefined,
          )
          const full = await effect([...seeds, "--results-dir", place], folder)
          assert.strictEqual(full.code, 1)
          assert.match(
            full.stderr,
            /seed 2: failed: cannot write s3:\/\/runs\/team\/.*make room.* s3:\/\/runs\/team\/.*\/0002/,
          )
          assert.match(full.stderr, /1 of 3 seeds failed/)
          assert.notInclude(full.stdout + full.stderr, "effect-s3-")

          failing(() => undefined)
          requests.length = 0
          const resumed = await effect([...seeds, "--results-dir", place, "--resume", "latest"], folder)
          assert.strictEqual(resumed.code, 0, resumed.stderr)
          const written = new Set(
            requests.flatMap(({ method, path }) => (method === "PUT" ? (seedOf(path) ?? []) : [])),
          )
          // The summary of the seeds is in the folder of the first run.
          written.delete("0001")
          assert.deepStrictEqual([...written], ["0002"])

          const alone = await effect(seeds, folder)
          assert.deepStrictEqual(digestsIn(resumed.stdout), digestsIn(alone.stdout))
          const listed = await effect(["runs", place, "--finished", "--json"], folder)
          assert.lengthOf(listed.stdout.trim().split("\n"), 3)
          const again = await effect([...seeds, "--results-dir", place, "--resume", "latest"], folder)
          assert.deepStrictEqual(digestsIn(again.stdout), digestsIn(alone.stdout))
          assert.include(again.stderr, "(earlier)")
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.live("gets each run of its workers once and whole, though two train it at once and a third is late", () =>
    Effect.gen(function* () {
      const { requests } = yield* bucketServer()
      yield* Effect.promise(() =>
        withFolder(async (folder) => {
          const path = "2026-01-31_12-00-00/no-hash_train_environment_algorithm/CartPole-v1_ppo/0001"
          const file = join(folder, "train.ts")
          writeFileSync(file, "export default 1\n")
          const sha256 = createHash("sha256").update("export default 1\n").digest("hex")
          const payload = {
            args: ["--seed", "1"],
            files: [{ path: file, sha256 }],
            resultsDir: place,
            path,
            part: { time: path.slice(0, 19), commit: "no-hash", population: {}, command: "effect run" },
          }
          const train = trainerOf(path)
          const test = Effect.gen(function* () {
            const handler = yield* sweepHandler
            const one = yield* doneTwice(handler, payload, train)
            assert.include(JSON.stringify(one), `${place}/${path}`)
            const late = yield* Effect.provideService(handler.perform(payload), RunCommand, () =>
              Effect.die("it trains"),
            )
            assert.deepStrictEqual(late, one)
            const puts = requests.filter(({ method }) => method === "PUT").map(({ path }) => path)
            const files = puts.filter((name) => !name.endsWith("/run.lock"))
            assert.lengthOf(files, 3, files.join(" "))
            assert.isTrue(files.at(-1)?.endsWith("/return.json"))
          })
          await Effect.runPromise(Effect.provide(test, NodeServices.layer))
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.live.skipIf(!hasPostgres)("is trained by workers of a cluster, without a folder that they share", () =>
    Effect.gen(function* () {
      const { failing } = yield* bucketServer()
      const postgres = yield* Effect.acquireRelease(
        Effect.promise(() => startPostgres()),
        (server) => Effect.promise(() => killAll().then(() => server.remove())),
      )
      yield* Effect.promise(() =>
        withFolder(async (folder) => {
          writeFileSync(join(folder, "train.ts"), program("checkpoint: { everySteps: 1024 }"))
          const alone = await effect(seeds, folder)
          const workers = [0, 1].map(() => startWorker(postgres.url, folder, ["--slots", "1"]))
          await Promise.all(workers.map((worker) => worker.says(/joined/)))
          // The worker that begins to publish a run is killed; another one publishes it again.
          let isKilled = false
          failing(({ method, path }) => {
            if (isKilled || method !== "PUT" || !path.endsWith("/config.yaml")) return undefined
            isKilled = true
            for (const worker of workers) worker.child.kill("SIGKILL")
            return "lose"
          })
          const sweep = start([...seeds, "--results-dir", place, "--quiet", "--cluster", postgres.url], folder)
          await Promise.all(workers.map((worker) => worker.ended))
          const third = startWorker(postgres.url, folder, ["--slots", "2"])
          const { code, stdout, stderr } = await sweep.ended
          assert.strictEqual(code, 0, stderr)
          assert.isTrue(isKilled)
          assert.deepStrictEqual(digestsIn(stdout), digestsIn(alone.stdout))
          const listed = await effect(["runs", place, "--finished", "--json"], folder)
          assert.lengthOf(listed.stdout.trim().split("\n"), 3)
          await interrupted(third)
        }),
      )
    }).pipe(Effect.scoped),
  )
})
