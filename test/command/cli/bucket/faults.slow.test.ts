import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Fault } from "../../../run/store/objects/s3Proxy.ts"
import { effect, program, resultOf, withFolder } from "../effect.ts"
import { bucketServer } from "./inBucket.ts"

const args = ["run", "train.ts", "--seed", "3", "--json", "--quiet"]
const inBucket = [...args, "--results-dir", "s3://runs/team"]

/** A folder with a program that saves a checkpoint every 512 steps. */
const withProgram = (body: (folder: string) => Promise<void>) =>
  Effect.promise(() =>
    withFolder((folder) => {
      writeFileSync(join(folder, "train.ts"), program("checkpoint: { everySteps: 512 }"))
      return body(folder)
    }),
  )

describe("a run in a bucket", () => {
  it.live("ends as on disk although connections are cut, answers get lost and the server is busy", () =>
    Effect.gen(function* () {
      const { failing, requests } = yield* bucketServer()
      yield* withProgram(async (folder) => {
        const faults: ReadonlyArray<Fault> = ["cut", "lose", { status: 503, code: "SlowDown" }]
        let failed = 0
        failing(() => (requests.length % 5 === 0 ? faults[failed++ % faults.length] : undefined))
        const there = await effect(inBucket, folder)
        assert.strictEqual(there.code, 0, there.stderr)
        assert.isAbove(failed, 10)
        const here = await effect(args, folder)
        assert.strictEqual(resultOf(there).digest, resultOf(here).digest)
        const replayed = await effect(["replay", resultOf(there).runDir, "--json", "--quiet"], folder)
        assert.isTrue(resultOf(replayed).same, replayed.stderr)
      })
    }).pipe(Effect.scoped),
  )

  it.live("that is full ends with what to do, and the run resumes as soon as there is room", () =>
    Effect.gen(function* () {
      const { failing } = yield* bucketServer()
      yield* withProgram(async (folder) => {
        let checkpoints = 0
        failing(({ method, path }) => {
          if (method === "PUT" && path.endsWith("/manifest.json")) checkpoints++
          return method === "PUT" && checkpoints >= 3 ? { status: 507, code: "XMinioStorageFull" } : undefined
        })
        const full = await effect(inBucket, folder)
        assert.strictEqual(full.code, 1)
        assert.match(
          full.stderr,
          /effect: cannot write s3:\/\/runs\/team\/.+: http:\/\/.+ answered 507 XMinioStorageFull.*; the store is full: make room in the bucket runs/,
        )
        failing(() => undefined)
        const resumed = await effect([...inBucket, "--resume", "latest"], folder)
        assert.strictEqual(resumed.code, 0, resumed.stderr)
        assert.strictEqual(resultOf(resumed).digest, resultOf(await effect(args, folder)).digest)
      })
    }).pipe(Effect.scoped),
  )

  it.live("in which a file can't be read fails the listing, instead of leaving facts out", () =>
    Effect.gen(function* () {
      const { failing } = yield* bucketServer()
      yield* withProgram(async (folder) => {
        const { runDir } = resultOf(await effect(inBucket, folder))
        failing(({ path }) => (path.endsWith("/metrics.json") ? { status: 403, code: "AccessDenied" } : undefined))
        for (const command of [
          ["runs", "s3://runs/team"],
          ["runs", "show", runDir],
          ["eval", runDir],
        ]) {
          const { code, stdout, stderr } = await effect(command, folder)
          assert.strictEqual(code, 2)
          assert.strictEqual(stdout, "")
          assert.match(stderr, /^effect: s3:\/\/runs\/team.*: http:\/\/.+ answered 403 AccessDenied: AccessDenied; /)
        }
      })
    }).pipe(Effect.scoped),
  )

  it.live("of a server that ignores conditions of puts works, and says that the lock is weaker", () =>
    Effect.gen(function* () {
      yield* bucketServer({ isConditional: false })
      yield* withProgram(async (folder) => {
        const { code, stderr } = await effect(inBucket, folder)
        assert.strictEqual(code, 0, stderr)
        assert.include(stderr, "/run.lock: this store ignores conditions of puts (If-None-Match)")
      })
    }).pipe(Effect.scoped),
  )
})
