import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ObjectStore, storedRuns } from "../../src/index.ts"
import { layerBucket } from "../../src/run/store/objects/edgeStores.ts"
import { workerd } from "../bundle/workerd.ts"
import { bucketOf } from "../run/store/objects/bindings.ts"
import { serveBucket } from "./bucketServer.ts"
import { train } from "./bucketWorker.ts"
import { edge, post } from "./edge.ts"

describe.skipIf(workerd === undefined)("a training in workerd, in a bucket of R2", () => {
  it.effect("resumes there and in Node to the digest of a run that never stopped", () =>
    Effect.gen(function* () {
      const whole = yield* train(128).pipe(Effect.provide(ObjectStore.layerMemory))
      const bucket = yield* serveBucket
      const served = yield* edge({ entry: "test/edge/bucketWorker.ts", store: { kind: "r2Bucket", port: bucket.port } })
      const first = yield* post(served.url)
      assert.strictEqual(first.status, 200, served.printed())
      assert.notStrictEqual(first.body.digest, whole.digest)

      const copies = new Map([...bucket.objects].map(([key, bytes]) => [key, Uint8Array.from(bytes).buffer]))
      const inNode = yield* Effect.gen(function* () {
        const [run] = yield* storedRuns
        assert.strictEqual(run, first.body.runDir)
        return yield* train(128, run)
      }).pipe(Effect.provide(layerBucket(bucketOf(copies))))
      assert.strictEqual(inNode.digest, whole.digest)

      const second = yield* post(served.url)
      assert.deepStrictEqual(second.body, { runDir: first.body.runDir, digest: whole.digest }, served.printed())
    }),
  )
})
