import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { KeyValueStore } from "effect/persistence"
import { CartPole, Ppo, Recorder, RunStore, scores, storedRuns, Train, Wasm } from "../../../../src/index.ts"
import { layerBucket, layerNamespace } from "../../../../src/run/store/objects/edgeStores.ts"
import { layer as layerIndexedDb } from "../../../../src/run/store/objects/indexedDb.ts"
import { ObjectStore } from "../../../../src/run/store/objects/ObjectStore.ts"
import { bucketOf, namespaceOf } from "./bindings.ts"

const stores = {
  "in memory": ObjectStore.layerMemory,
  "in a KeyValueStore": ObjectStore.layerKeyValueStore.pipe(Layer.provide(KeyValueStore.layerMemory)),
  "in a bucket": Layer.suspend(() => layerBucket(bucketOf())),
  "in a namespace": Layer.suspend(() => layerNamespace(namespaceOf())),
}

const train = (totalSteps: number, resume?: string) =>
  Train.run({
    env: CartPole.env,
    algorithm: Ppo.make({ nsteps: 16, hidden: [8], schedule: "constant" }),
    numEnvs: 2,
    totalSteps,
  }).pipe(
    Effect.provide(
      Layer.mergeAll(
        Wasm.layer,
        Recorder.layer(scores),
        RunStore.layerObjects({ time: new Date(0), ...(resume === undefined ? {} : { resume }) }),
      ),
    ),
  )

for (const [where, layer] of Object.entries(stores)) {
  describe(`objects ${where}`, () => {
    it.effect("are read as they were written, until they are replaced or removed", () =>
      Effect.gen(function* () {
        const store = yield* ObjectStore
        const bytes = Uint8Array.of(9, 0, 255, 7, 9)
        yield* store.put("a/one", bytes.subarray(1, 4))
        bytes.fill(1)
        const read = yield* store.get("a/one")
        assert.deepStrictEqual(read, Uint8Array.of(0, 255, 7))
        read?.fill(1)
        assert.deepStrictEqual(yield* store.get("a/one"), Uint8Array.of(0, 255, 7))
        yield* store.put("a/one", new Uint8Array(0))
        assert.deepStrictEqual(yield* store.get("a/one"), new Uint8Array(0))
        yield* store.remove("a/one")
        yield* store.remove("a/one")
        assert.isUndefined(yield* store.get("a/one"))
      }).pipe(Effect.provide(layer)),
    )

    it.effect("are listed by the beginning of their keys", () =>
      Effect.gen(function* () {
        const store = yield* ObjectStore
        const keys = ["run/a", "run/b/c", "run/d", "run/e", "run/ü", "runs/a", "other"]
        for (const key of keys) yield* store.put(key, Uint8Array.of(1))
        assert.sameMembers([...(yield* store.list("run/"))], keys.slice(0, 5))
        assert.sameMembers([...(yield* store.list(""))], keys)
        assert.deepStrictEqual(yield* store.list("none/"), [])
      }).pipe(Effect.provide(layer)),
    )

    it.effect("keep a run that resumes to the digest of one that was never interrupted", () =>
      Effect.gen(function* () {
        const { runDir } = yield* train(64)
        assert.deepStrictEqual(yield* storedRuns, [runDir])
        const resumed = yield* train(128, runDir)
        const whole = yield* train(128).pipe(Effect.provide(ObjectStore.layerMemory))
        assert.strictEqual(resumed.digest, whole.digest)
      }).pipe(Effect.provide(layer)),
    )
  })
}

describe("an object store", () => {
  it.effect("that is full fails the run with the path of the file, and keeps what was written before", () =>
    Effect.gen(function* () {
      const objects = new Map<string, ArrayBuffer>()
      const full = layerBucket(bucketOf(objects, 4000))
      const error = yield* Effect.flip(train(64).pipe(Effect.provide(full)))
      assert.strictEqual(error._tag, "RunStoreError")
      assert.match(error.message, /^cannot (write|append to) 1970-01-01.*: put: the bucket is full \(10001\)$/)
      assert.isTrue([...objects.keys()].some((key) => key.endsWith("/config.yaml")))
    }),
  )

  it.effect("in a browser's database says what is missing in an engine without one", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Effect.scoped(Layer.build(layerIndexedDb("runs"))))
      assert.strictEqual(
        error.message,
        "this engine has no IndexedDB; use another store, such as ObjectStore.layerMemory",
      )
    }),
  )
})
