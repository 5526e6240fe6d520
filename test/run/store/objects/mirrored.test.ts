import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Scope } from "effect"
import { RunStoreError } from "../../../../src/run/store/RunStoreError.ts"
import { Folder } from "../../../../src/index.ts"
import { mirrored } from "../../../../src/run/store/objects/mirrored.ts"

/**
 * A folder and its copy in an object store that refuses to hold more than `most` objects. `arriving` delays what is
 * written to the store.
 */
const folderWithCopy = Effect.fnUntraced(function* (most = Infinity, arriving: Effect.Effect<void> = Effect.void) {
  const objects = new Map<string, string>()
  const order: Array<string> = []
  const store = {
    get: () => Effect.succeed(undefined),
    put: (key: string, bytes: Uint8Array) =>
      Effect.flatMap(arriving, () => {
        if (objects.size >= most && !objects.has(key))
          return Effect.fail(new RunStoreError({ path: key, message: "the store is full" }))
        objects.set(key, new TextDecoder().decode(bytes))
        order.push(key)
        return Effect.void
      }),
    list: (prefix: string) => Effect.sync(() => [...objects.keys()].filter((key) => key.startsWith(prefix))),
    remove: (key: string) => Effect.sync(() => void objects.delete(key)),
  }
  const disk = Folder.treeOf("disk", Folder.inMemory(new Map())("disk"))
  const tree = yield* mirrored(disk, { store, key: "runs/1", address: "s3://runs/1" })
  return { tree, objects, order }
})

const bytes = (text: string) => new TextEncoder().encode(text)

describe("a folder that is copied to an object store", () => {
  it.effect("copies a file when it is written, and one that grows when it is flushed", () =>
    Effect.gen(function* () {
      const { tree, objects } = yield* folderWithCopy()
      yield* tree.write("config.yaml", "a: 1\n")
      assert.deepStrictEqual([...objects], [["runs/1/config.yaml", "a: 1\n"]])
      yield* tree.append("scores.jsonl", "1\n")
      yield* (yield* tree.appending("scores.jsonl"))("2\n")
      assert.isFalse(objects.has("runs/1/scores.jsonl"))
      yield* tree.sync("scores.jsonl")
      assert.strictEqual(objects.get("runs/1/scores.jsonl"), "1\n2\n")
      yield* tree.truncate("scores.jsonl", 2)
      yield* tree.sync("scores.jsonl")
      assert.strictEqual(objects.get("runs/1/scores.jsonl"), "1\n")
      yield* tree.remove("scores.jsonl")
      assert.deepStrictEqual([...objects.keys()], ["runs/1/config.yaml"])
    }).pipe(Effect.scoped),
  )

  it.effect("copies all that has changed before a checkpoint, and the checkpoint's manifest last", () =>
    Effect.gen(function* () {
      const { tree, objects, order } = yield* folderWithCopy()
      const write = (weights: string) =>
        tree.writeDirectory("step_1", { weights: bytes(weights), old: bytes("") }, () => ({ manifest: bytes(weights) }))
      yield* tree.append("run.log", "begun\n")
      yield* write("1")
      assert.deepStrictEqual(
        order.map((key) => key.slice("runs/1/".length)),
        ["run.log", "step_1/weights", "step_1/old", "step_1/manifest"],
      )
      yield* tree.writeDirectory("step_1", { weights: bytes("2") })
      assert.deepStrictEqual([...objects.keys()].sort(), ["runs/1/run.log", "runs/1/step_1/weights"])
      yield* tree.writeDirectory("export", { "files/run/a": bytes("3"), b: bytes("4") })
      assert.deepStrictEqual(order.slice(-2), ["runs/1/export/files/run/a", "runs/1/export/b"])
      yield* tree.remove("export")
      yield* tree.link("latest", "step_1")
      assert.strictEqual(objects.get("runs/1/latest"), "step_1")
      yield* tree.write("step_10", "another")
      yield* tree.remove("step_1")
      assert.deepStrictEqual([...objects.keys()].sort(), ["runs/1/latest", "runs/1/run.log", "runs/1/step_10"])
    }).pipe(Effect.scoped),
  )

  it.effect("has the newest lines though an earlier copy takes longer", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      let copies = 0
      const arriving = Effect.suspend(() => (++copies === 1 ? Deferred.await(gate) : Effect.void))
      const { tree, objects } = yield* folderWithCopy(Infinity, arriving)
      yield* tree.append("scores.jsonl", "1\n")
      const first = yield* Effect.forkChild(tree.sync("scores.jsonl"))
      yield* Effect.yieldNow
      assert.strictEqual(copies, 1)
      yield* tree.append("scores.jsonl", "2\n")
      const second = yield* Effect.forkChild(tree.sync("scores.jsonl"))
      yield* Effect.yieldNow
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(first)
      yield* Fiber.join(second)
      assert.strictEqual(objects.get("runs/1/scores.jsonl"), "1\n2\n")
    }).pipe(Effect.scoped),
  )

  it.effect("copies the last lines when the run ends", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { tree, objects } = yield* Scope.provide(folderWithCopy(), scope)
      yield* tree.append("run.log", "end\n")
      yield* tree.write("progress.json", "{}", { durable: false })
      assert.strictEqual(objects.size, 0)
      yield* Scope.close(scope, yield* Effect.exit(Effect.void))
      assert.deepStrictEqual(Object.fromEntries(objects), { "runs/1/run.log": "end\n", "runs/1/progress.json": "{}" })
    }),
  )

  it.effect("fails with the address of the copy if the store is full, and copies the file at the next occasion", () =>
    Effect.gen(function* () {
      const { tree, objects } = yield* folderWithCopy(1)
      yield* tree.write("a", "1")
      const error = yield* Effect.flip(tree.write("b", "2"))
      assert.strictEqual(error._tag, "RunStoreError")
      assert.strictEqual(error.message, "cannot write s3://runs/1/b: the store is full")
      assert.strictEqual(yield* tree.readText("b"), "2")
      yield* tree.remove("a")
      yield* tree.sync("b")
      assert.deepStrictEqual([...objects], [["runs/1/b", "2"]])
    }).pipe(Effect.scoped),
  )
})
