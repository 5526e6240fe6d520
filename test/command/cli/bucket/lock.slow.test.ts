import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import { ObjectStore, S3 } from "../../../../src/index.ts"
import { effect, program, resultOf, start, until, withFolder } from "../effect.ts"
import { bucketServer } from "./inBucket.ts"

const args = ["run", "train.ts", "--seed", "3", "--json", "--quiet"]
const inBucket = [...args, "--results-dir", "s3://runs/team"]

describe("the lock of a run in a bucket", () => {
  it.live("lets one of two processes take over the run of a frozen one, which writes nothing when it goes on", () =>
    Effect.gen(function* () {
      const server = yield* bucketServer()
      const store = yield* Effect.provide(
        ObjectStore,
        S3.layer({
          bucket: "runs",
          endpoint: server.endpoint,
          accessKeyId: server.accessKeyId,
          secretAccessKey: Redacted.make(server.secretAccessKey),
        }).pipe(Layer.provide(FetchHttpClient.layer)),
      )
      const contents = async (): Promise<ReadonlyMap<string, string>> => {
        const objects = (await Effect.runPromise(store.versions?.list("") ?? Effect.succeed([]))) ?? []
        return new Map(objects.map(({ key, version }) => [key, version]))
      }
      const checkpoints = (): ReadonlyArray<string> =>
        server.requests.flatMap(({ method, path }) =>
          method === "PUT" && path.endsWith("/manifest.json") ? [path] : [],
        )
      yield* Effect.promise(() =>
        withFolder(async (folder) => {
          const machines = ["one", "two", "three"].map((name) => join(folder, name))
          for (const machine of machines) {
            mkdirSync(machine)
            writeFileSync(join(machine, "train.ts"), program("checkpoint: { everySteps: 6400 }, totalSteps: 128_000"))
          }
          const env = { ...process.env, ...server.env, EFFECT_RL_LEASE_SECONDS: "3" }
          const whole = resultOf(await effect(args, machines[0]))

          const frozen = start(inBucket, machines[0], { env })
          await until(() => checkpoints().length > 0)
          frozen.child.kill("SIGSTOP")
          // Its process lives, so the others wait until it has not renewed the lock for three seconds. Then one gets it.
          const before = checkpoints().length
          const racing = machines
            .slice(1)
            .map((machine) => start([...inBucket, "--resume", "latest"], machine, { env }))
          const ended = await Promise.all(racing.map((one) => one.ended))
          const winners = ended.filter(({ code }) => code === 0)
          const refused = ended.filter(({ code }) => code !== 0)
          assert.isAbove(winners.length, 0, ended.map(({ stderr }) => stderr).join(""))
          for (const { stderr } of refused) assert.match(stderr, /run\.lock: process \d+ on .* is writing this run/)
          for (const winner of winners) assert.strictEqual(resultOf(winner).digest, whole.digest)
          const written = checkpoints().slice(before)
          assert.deepStrictEqual([...written].sort(), [...new Set(written)].sort(), "a checkpoint was written twice")

          const finished = await contents()
          frozen.child.kill("SIGCONT")
          const { code, stderr } = await frozen.ended
          assert.notStrictEqual(code, 0)
          assert.include(stderr, "this process lost the lock")
          assert.deepStrictEqual(await contents(), finished)
        }),
      )
    }).pipe(Effect.scoped),
  )
})
