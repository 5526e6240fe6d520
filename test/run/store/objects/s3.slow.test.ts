import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import { ObjectStore, S3 } from "../../../../src/index.ts"
import { objectStoreLaws, train, versionLaws } from "./objectStoreLaws.ts"
import { s3Proxy } from "./s3Proxy.ts"
import { s3Server } from "./s3Server.ts"

/** The object store in a bucket of a server that starts with the Layer. */
const layerWith = (more: Partial<S3.S3Options>, ...buckets: ReadonlyArray<string>) =>
  Layer.unwrap(
    Effect.map(s3Server(...buckets), ({ secretAccessKey, ...server }) =>
      S3.layer({ bucket: "runs", ...server, secretAccessKey: Redacted.make(secretAccessKey), ...more }),
    ),
  ).pipe(Layer.provide(FetchHttpClient.layer))

objectStoreLaws("in a bucket of a server", layerWith({}, "runs"), it.live)
objectStoreLaws("below a prefix", layerWith({ prefix: "team/" }, "runs"), it.live)
// The server ignores conditions, which the proxy in front of it adds.
versionLaws(
  "in a bucket of a server",
  Layer.unwrap(
    Effect.map(s3Proxy(), ({ endpoint, accessKeyId, secretAccessKey }) =>
      S3.layer({ bucket: "runs", endpoint, accessKeyId, secretAccessKey: Redacted.make(secretAccessKey) }),
    ),
  ).pipe(Layer.provide(FetchHttpClient.layer)),
  it.live,
)

describe("a bucket of a server that speaks S3", () => {
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
