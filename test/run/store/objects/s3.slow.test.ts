import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import {
  CartPole,
  ObjectStore,
  Ppo,
  Recorder,
  RunStore,
  S3,
  scores,
  storedRuns,
  Train,
  Wasm,
} from "../../../../src/index.ts"
import { s3Server } from "./s3Server.ts"

/** The object store in a bucket of a server that starts with the Layer. */
const layerWith = (more: Partial<S3.S3Options>, ...buckets: ReadonlyArray<string>) =>
  Layer.unwrap(
    Effect.map(s3Server(...buckets), ({ secretAccessKey, ...server }) =>
      S3.layer({ bucket: "runs", ...server, secretAccessKey: Redacted.make(secretAccessKey), ...more }),
    ),
  ).pipe(Layer.provide(FetchHttpClient.layer))

const train = (totalSteps: number, resume?: string) =>
  Train.run({
    env: CartPole.env,
    algorithm: Ppo.make({ nsteps: 16, hidden: [8], schedule: "constant" }),
    numEnvs: 2,
    totalSteps,
    checkpoint: { everySteps: 32 },
  }).pipe(
    Effect.provide(
      Layer.mergeAll(
        Wasm.layer,
        Recorder.layer(scores),
        RunStore.layerObjects({ time: new Date(0), ...(resume === undefined ? {} : { resume }) }),
      ),
    ),
  )

describe("a bucket of a server that speaks S3", () => {
  it.live("keeps bytes by keys with any characters, until they are replaced or removed", () =>
    Effect.gen(function* () {
      const store = yield* ObjectStore
      for (const key of ["a/one", "ü ?&=+%20/'(*)!", "<&>\"'"]) {
        yield* store.put(key, Uint8Array.of(1))
        yield* store.put(key, Uint8Array.of(0, 255, 7))
        assert.deepStrictEqual(yield* store.get(key), Uint8Array.of(0, 255, 7), key)
        assert.deepStrictEqual(yield* store.list(key), [key])
        yield* store.remove(key)
        yield* store.remove(key)
        assert.isUndefined(yield* store.get(key))
      }
      yield* store.put("empty", new Uint8Array(0))
      assert.deepStrictEqual(yield* store.get("empty"), new Uint8Array(0))
      assert.deepStrictEqual(yield* store.list("none/"), [])
    }).pipe(Effect.provide(layerWith({ prefix: "team/" }, "runs"))),
  )

  it.live("keeps a run that resumes to the digest of one that was never interrupted", () =>
    Effect.gen(function* () {
      const { runDir } = yield* train(64)
      assert.deepStrictEqual(yield* storedRuns, [runDir])
      const resumed = yield* train(128, runDir)
      const whole = yield* train(128).pipe(Effect.provide(ObjectStore.layerMemory))
      assert.strictEqual(resumed.digest, whole.digest)
    }).pipe(Effect.provide(layerWith({}, "runs"))),
  )

  it.live("that is missing fails the run with a line that says so", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(train(64))
      assert.strictEqual(error._tag, "RunStoreError")
      assert.match(
        error.message,
        /^cannot list .*: http:\/\/127\.0\.0\.1:\d+ answered 404 NoSuchBucket: The specified bucket does not exist; create the bucket runs, or name another one$/,
      )
    }).pipe(Effect.provide(layerWith({}, "other"))),
  )

  it.live("refuses a wrong key with a line that names the key and not its secret", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(Effect.flatMap(ObjectStore, (store) => store.get("a")))
      assert.include(message, "answered 403 InvalidAccessKeyId: The AWS Access Key Id you provided does not exist")
      assert.include(message, "; check the key AKIAWRONG and its secret (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)")
      assert.notInclude(message, "hidden")
    }).pipe(Effect.provide(layerWith({ accessKeyId: "AKIAWRONG", secretAccessKey: Redacted.make("hidden") }, "runs"))),
  )
})
