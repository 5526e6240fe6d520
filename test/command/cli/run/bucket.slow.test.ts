import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import { ObjectStore, S3 } from "../../../../src/index.ts"
import { s3Server } from "../../../run/store/objects/s3Server.ts"
import { effect, start, withFolder } from "../effect.ts"

const training = `import { CartPole, Ppo, Train } from "effect-rl"
export default Train.run({
  env: CartPole.env, numEnvs: 8, totalSteps: 120_000,
  algorithm: Ppo.make({ nsteps: 64 }), checkpoint: { everySteps: 2_000 },
})
`

const json = (text: string): { readonly digest: string; readonly runDir: string } => JSON.parse(text)

describe("effect run --results-dir s3://…", () => {
  it.live("resumes a killed run on another machine to the digest of one on disk", () =>
    Effect.gen(function* () {
      const { endpoint, accessKeyId, secretAccessKey } = yield* s3Server("runs")
      const bucket = S3.layer({
        bucket: "runs",
        endpoint,
        accessKeyId,
        secretAccessKey: Redacted.make(secretAccessKey),
      })
      const keys = Effect.flatMap(ObjectStore, (store) => store.list("")).pipe(
        Effect.provide(bucket.pipe(Layer.provide(FetchHttpClient.layer))),
      )
      const env = {
        ...process.env,
        AWS_ACCESS_KEY_ID: accessKeyId,
        AWS_SECRET_ACCESS_KEY: secretAccessKey,
        AWS_ENDPOINT_URL: endpoint,
      }
      yield* Effect.promise(() =>
        withFolder(async (folder) => {
          const [one, other] = [join(folder, "one"), join(folder, "other")]
          for (const machine of [one, other]) {
            mkdirSync(machine)
            writeFileSync(join(machine, "train.ts"), training)
          }
          const args = ["run", "train.ts", "--seed", "3", "--json", "--quiet"]
          const inBucket = [...args, "--results-dir", "s3://runs/team"]
          const killed = start(inBucket, one, { env })
          let done = false
          while (!done) done = (await Effect.runPromise(keys)).some((key) => key.endsWith("/manifest.json"))
          killed.child.kill("SIGKILL")
          assert.strictEqual((await killed.ended).signal, "SIGKILL")

          const resumed = await start([...inBucket, "--resume", "latest"], other, { env }).ended
          assert.strictEqual(resumed.code, 0, resumed.stderr)
          const whole = await effect(args, one)
          assert.strictEqual(json(resumed.stdout).digest, json(whole.stdout).digest)

          // The copy in the bucket is that of the finished run, and the address of the run names it.
          const { runDir } = json(resumed.stdout)
          assert.match(runDir, /^s3:\/\/runs\/team\/.+\/0003$/)
          const again = await start([...inBucket, "--resume", runDir], one, { env }).ended
          assert.strictEqual(json(again.stdout).digest, json(whole.stdout).digest)
          const names = (await Effect.runPromise(keys)).map((key) => `s3://runs/${key}`)
          for (const name of ["config.yaml", "return.json", "run.log", "scores/train/scores.jsonl", "git.json"])
            assert.include(names, `${runDir}/${name}`)
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.live("says what is wrong before the training begins", () =>
    Effect.gen(function* () {
      const { endpoint } = yield* s3Server("runs")
      yield* Effect.promise(() =>
        withFolder(async (folder) => {
          writeFileSync(join(folder, "train.ts"), training)
          writeFileSync(join(folder, "trainer.yaml"), "kind: multirun\n")
          const run = (args: ReadonlyArray<string>, keys: NodeJS.ProcessEnv = {}, file = "train.ts") =>
            start(["run", file, ...args], folder, {
              env: { PATH: process.env.PATH, AWS_ENDPOINT_URL: endpoint, ...keys },
            }).ended
          const right = { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" }
          const cases: ReadonlyArray<readonly [Awaited<ReturnType<typeof run>>, string]> = [
            [await run(["--results-dir", "s3://runs"]), "--results-dir s3://runs: set AWS_ACCESS_KEY_ID"],
            [await run(["--results-dir", "s3://"], right), "expected s3://BUCKET or s3://BUCKET/PREFIX, found s3://"],
            [await run(["--results-dir", "s3://none"], right), "create the bucket none, or name another one"],
            [
              await run(["--results-dir", "s3://runs"], { ...right, AWS_ACCESS_KEY_ID: "wrong" }),
              "check the key wrong and its secret (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)",
            ],
            [
              await run(["--results-dir", "s3://runs", "--resume", "s3://runs/none"], right),
              "--resume s3://runs/none: expected the address of a run, found no config.yaml there",
            ],
            [
              await run(["--results-dir", "s3://runs"], right, "trainer.yaml"),
              "does not work for multi-run trainers, whose ranks share a folder; use a folder on disk",
            ],
            [await run(["--results-dir", "s3://none", "--seeds", "1..2"], right), "s3://none: http://127.0.0.1"],
          ]
          for (const [{ code, stderr }, message] of cases) {
            assert.include(stderr, message)
            assert.notStrictEqual(code, 0)
            assert.strictEqual(stderr.trim().split("\n").length, 1, stderr)
          }
        }),
      )
    }).pipe(Effect.scoped),
  )
})
