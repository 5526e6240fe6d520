import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { CartPole, Ppo, Recorder, RunStore, scores, storedRuns, Train, Wasm } from "../../../../src/index.ts"
import { ObjectStore } from "../../../../src/run/store/objects/ObjectStore.ts"

/** Trains for this many steps, with a checkpoint in the middle of 64 steps. `resume` is the path of a run. */
export const train = (totalSteps: number, resume?: string) =>
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

/** Declares the tests that each object store must pass; `test` runs one with a virtual or with the real clock. */
export const objectStoreLaws = <E>(
  where: string,
  layer: Layer.Layer<ObjectStore, E>,
  test: typeof it.effect | typeof it.live = it.effect,
) => {
  describe(`objects ${where}`, () => {
    test("are read as they were written, until they are replaced or removed", () =>
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
      }).pipe(Effect.provide(layer)))

    test("are listed by the beginning of their keys, which may have any characters", () =>
      Effect.gen(function* () {
        const store = yield* ObjectStore
        const keys = ["run/a", "run/b/c", "run/ü ?&=+%20/'(*)!", "run/<&>\"'", "run/ü", "runs/a", "other"]
        for (const key of keys) yield* store.put(key, Uint8Array.of(1))
        assert.sameMembers([...(yield* store.list("run/"))], keys.slice(0, 5))
        assert.sameMembers([...(yield* store.list(""))], keys)
        assert.deepStrictEqual(yield* store.list("none/"), [])
        for (const key of keys) assert.deepStrictEqual(yield* store.get(key), Uint8Array.of(1), key)
      }).pipe(Effect.provide(layer)))

    test("keep a run that resumes to the digest of one that was never interrupted", () =>
      Effect.gen(function* () {
        const { runDir } = yield* train(64)
        assert.deepStrictEqual(yield* storedRuns, [runDir])
        const resumed = yield* train(128, runDir)
        const whole = yield* train(128).pipe(Effect.provide(ObjectStore.layerMemory))
        assert.strictEqual(resumed.digest, whole.digest)
      }).pipe(Effect.provide(layer)))
  })
}

/** Declares the tests of the operations of stores that know the version of each object. */
export const versionLaws = <E>(
  where: string,
  layer: Layer.Layer<ObjectStore, E>,
  test: typeof it.effect | typeof it.live = it.effect,
) => {
  describe(`versions of objects ${where}`, () => {
    test("let one of several writers of the same object succeed", () =>
      Effect.gen(function* () {
        const { versions = assert.fail("it has no versions") } = yield* ObjectStore
        const racing = (expected: string | undefined, from: number) =>
          Effect.forEach([0, 1, 2, 3], (writer) => versions.put("lock", Uint8Array.of(from + writer), expected), {
            concurrency: "unbounded",
          })
        let expected: string | undefined
        for (const from of [10, 20, 30]) {
          const written = yield* racing(expected, from)
          assert.lengthOf(
            written.filter((version) => version !== undefined),
            1,
          )
          const winner = written.findIndex((version) => version !== undefined)
          const read = yield* versions.get("lock")
          assert.deepStrictEqual(read?.bytes, Uint8Array.of(from + winner))
          assert.strictEqual(read?.version, written[winner])
          expected = read?.version
        }
        assert.isUndefined(yield* versions.put("none", Uint8Array.of(1), expected))
        assert.isUndefined(yield* versions.get("none"))
      }).pipe(Effect.provide(layer)))

    test("are listed with sizes and ages, and parts of objects are read", () =>
      Effect.gen(function* () {
        const { versions = assert.fail("it has no versions"), put, remove } = yield* ObjectStore
        yield* put("run/a", Uint8Array.of(1, 2, 3, 4))
        const [before] = yield* versions.list("run/")
        assert.deepStrictEqual({ ...before, version: "", age: 0 }, { key: "run/a", bytes: 4, version: "", age: 0 })
        assert.isTrue(before.age >= 0 && before.age < 60_000, String(before.age))
        assert.strictEqual((yield* versions.get("run/a"))?.version, before.version)
        assert.deepStrictEqual((yield* versions.get("run/a", { offset: 1, bytes: 2 }))?.bytes, Uint8Array.of(2, 3))
        assert.isUndefined(yield* versions.get("run/a", { offset: 4, bytes: 1 }))
        yield* put("run/a", Uint8Array.of(1, 2, 3, 5))
        assert.notStrictEqual((yield* versions.list("run/"))[0].version, before.version)
        yield* remove("run/a")
        assert.deepStrictEqual(yield* versions.list(""), [])
      }).pipe(Effect.provide(layer)))
  })
}
