import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { KeyValueStore } from "effect/persistence"
import { layerBucket, layerNamespace } from "../../../../src/run/store/objects/edgeStores.ts"
import { layer as layerIndexedDb } from "../../../../src/run/store/objects/indexedDb.ts"
import { ObjectStore } from "../../../../src/run/store/objects/ObjectStore.ts"
import { bucketOf, namespaceOf } from "./bindings.ts"
import { objectStoreLaws, train, versionLaws } from "./objectStoreLaws.ts"

const stores = {
  "in memory": ObjectStore.layerMemory,
  "in a KeyValueStore": ObjectStore.layerKeyValueStore.pipe(Layer.provide(KeyValueStore.layerMemory)),
  "in a bucket": Layer.suspend(() => layerBucket(bucketOf())),
  "in a namespace": Layer.suspend(() => layerNamespace(namespaceOf())),
}

for (const [where, layer] of Object.entries(stores)) objectStoreLaws(where, layer)
versionLaws("in memory", ObjectStore.layerMemory)

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
