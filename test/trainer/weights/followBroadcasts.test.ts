import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, FileSystem } from "effect"
import { TestClock } from "effect/testing"
import { Engine, EngineError, type EngineService } from "../../../src/decoder/inference/Engine.ts"
import { openRunFolder } from "../../../src/trainer/runs/guardedFolder.ts"
import { broadcast } from "../../../src/trainer/weights/Broadcasts.ts"
import {
  type BroadcastWeights,
  type Followed,
  follow,
  makeLook,
} from "../../../src/trainer/weights/followBroadcasts.ts"
import { disk, temporaryDirectory } from "../../run/store/disk.ts"
import { fakeEngine } from "../../decoder/serve/fakeEngine.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

const decode = (
  files: Readonly<Record<string, Uint8Array>>,
  path: string,
): Effect.Effect<BroadcastWeights, { readonly message: string }> => {
  if (Object.hasOwn(files, "model.safetensors")) return Effect.succeed({ _tag: "Full", weights: {} })
  const text = new TextDecoder().decode(files["adapter_model.safetensors"])
  if (text === "bad") return Effect.fail({ message: `${path}: bad` })
  return Effect.succeed({ _tag: "Adapter", adapter: { rank: 1, alpha: 1, tensors: {} } })
}

/** Writes a broadcast of a run below `directory`. */
const publish = Effect.fnUntraced(function* (directory: string, step: number, text = "good") {
  const fs = yield* FileSystem.FileSystem
  if (!(yield* fs.exists(directory))) yield* fs.makeDirectory(directory)
  const folder = yield* openRunFolder({ id: "run", directory })
  const contents: Readonly<Record<string, Uint8Array>> =
    text === "full"
      ? { "model.safetensors": bytes("all") }
      : { "adapter_model.safetensors": bytes(text), "adapter_config.json": bytes("{}") }
  yield* broadcast(folder, step, { keep: 2, contents: Effect.succeed(contents) })
})

const following = (choose: (root: string) => string = (root) => root) =>
  Effect.gen(function* () {
    const root = yield* temporaryDirectory
    const engine = fakeEngine()
    const reports: Array<Followed> = []
    const report = (followed: Followed) => Effect.sync(() => void reports.push(followed))
    const options = { directory: choose(root), decode, report }
    const loaded = Effect.map(engine.models, (models) => models.map(({ name, step }) => `${name}@${step}`))
    return { root, engine, reports, options, loaded }
  })

describe("an engine that follows the broadcasts of runs", () => {
  it.effect("loads the newest adapter of each run, under the run's name", () =>
    Effect.gen(function* () {
      const { root, engine, reports, options, loaded } = yield* following()
      const look = yield* Effect.provideService(makeLook(options), Engine, engine)
      yield* look
      assert.deepStrictEqual(yield* loaded, ["base@0"])
      yield* publish(`${root}/run_a`, 1)
      yield* publish(`${root}/run_a`, 2)
      yield* publish(`${root}/run_b.c`, 7)
      yield* publish(`${root}/other`, 1)
      yield* look
      assert.deepStrictEqual(yield* loaded, ["base@0", "run_a@2", "run_b.c@7"])
      yield* look
      assert.lengthOf(reports, 2)
      yield* publish(`${root}/run_a`, 3)
      yield* look
      assert.deepStrictEqual(yield* loaded, ["base@0", "run_a@3", "run_b.c@7"])
      assert.deepStrictEqual(reports.at(-1), { _tag: "Loaded", run: "run_a", step: 3 })
    }).pipe(Effect.provide(disk)),
  )

  it.effect("keeps the weights that it has when a broadcast is broken, and takes the next one", () =>
    Effect.gen(function* () {
      const { root, engine, reports, options, loaded } = yield* following()
      const look = yield* Effect.provideService(makeLook(options), Engine, engine)
      yield* publish(`${root}/run_a`, 1)
      yield* look
      yield* publish(`${root}/run_a`, 2, "bad")
      yield* look
      yield* look
      assert.deepStrictEqual(yield* loaded, ["base@0", "run_a@1"])
      assert.deepStrictEqual(reports.slice(1), [
        { _tag: "Failed", run: "run_a", step: 2, message: `${root}/run_a/broadcast/step_2: bad` },
      ])
      yield* publish(`${root}/run_a`, 3)
      yield* look
      assert.deepStrictEqual(yield* loaded, ["base@0", "run_a@3"])
    }).pipe(Effect.provide(disk)),
  )

  it.effect("reports a run whose folder cannot be read once, and loads the others", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const { root, engine, reports, options, loaded } = yield* following()
      const look = yield* Effect.provideService(makeLook(options), Engine, engine)
      yield* publish(`${root}/run_a`, 1)
      yield* fs.makeDirectory(`${root}/run_a/control/token`, { recursive: true })
      yield* publish(`${root}/run_b`, 1)
      yield* look
      yield* look
      assert.deepStrictEqual(yield* loaded, ["base@0", "run_b@1"])
      assert.deepStrictEqual(
        reports.map(({ _tag, run }) => `${run} ${_tag}`),
        ["run_a Unreadable", "run_b Loaded"],
      )
      yield* fs.remove(`${root}/run_a/control/token`, { recursive: true })
      yield* look
      assert.deepStrictEqual(yield* loaded, ["base@0", "run_b@1", "run_a@1"])
    }).pipe(Effect.provide(disk)),
  )

  it.effect("forgets a run that was deleted, and begins again with one that was made again", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const { root, engine, reports, options, loaded } = yield* following()
      const look = yield* Effect.provideService(makeLook(options), Engine, engine)
      yield* publish(`${root}/run_a`, 5)
      yield* look
      yield* fs.remove(`${root}/run_a`, { recursive: true })
      yield* look
      assert.deepStrictEqual(yield* loaded, ["base@0"])
      assert.deepStrictEqual(reports.at(-1), { _tag: "Gone", run: "run_a" })
      yield* publish(`${root}/run_a`, 5)
      yield* look
      yield* fs.remove(`${root}/run_a`, { recursive: true })
      yield* publish(`${root}/run_a`, 1)
      yield* look
      assert.deepStrictEqual(yield* loaded, ["base@0", "run_a@1"])
    }).pipe(Effect.provide(disk)),
  )

  it.effect("unloads the adapter of a run that has ended, if there is no room for another", () =>
    Effect.gen(function* () {
      const { root, engine, options, loaded, reports } = yield* following()
      const fs = yield* FileSystem.FileSystem
      const small: EngineService = {
        ...engine,
        loadAdapter: (adapter) =>
          Effect.flatMap(engine.models, (models) =>
            models.length < 3 || models.some(({ name }) => name === adapter.name)
              ? engine.loadAdapter(adapter)
              : Effect.fail(new EngineError({ model: adapter.name, reason: "full", message: "no room" })),
          ),
      }
      const look = yield* Effect.provideService(makeLook(options), Engine, small)
      for (const run of ["run_a", "run_b"]) yield* publish(`${root}/${run}`, 1)
      yield* look
      const steps = Effect.fnUntraced(function* (run: string, maxSteps: number, finished: number) {
        for (const folder of ["control", "configs"]) yield* fs.makeDirectory(`${root}/${run}/${folder}`)
        yield* fs.writeFileString(`${root}/${run}/configs/orch.yaml`, `max_steps: ${maxSteps}\n`)
        yield* fs.writeFileString(`${root}/${run}/control/finished`, `${finished}\n`)
      })
      // This run was resumed with more steps.
      yield* steps("run_a", 2, 1)
      yield* steps("run_b", 1, 1)
      yield* publish(`${root}/run_c`, 1)
      yield* look
      assert.deepStrictEqual(yield* loaded, ["base@0", "run_a@1", "run_c@1"])
      // Both runs are trained, so neither may lose its adapter.
      yield* publish(`${root}/run_d`, 1)
      yield* look
      assert.deepStrictEqual(yield* loaded, ["base@0", "run_a@1", "run_c@1"])
      assert.deepStrictEqual(reports.at(-1), { _tag: "Failed", run: "run_d", step: 1, message: "no room" })
      const before = reports.length
      yield* look
      assert.lengthOf(reports, before)
      // The broadcast that had no room is loaded once a run has ended, whose adapter does not come back.
      yield* fs.writeFileString(`${root}/run_a/control/finished`, "2\n")
      for (let looks = 0; looks < 3; looks++) yield* look
      assert.deepStrictEqual(yield* loaded, ["base@0", "run_c@1", "run_d@1"])
      assert.deepStrictEqual(reports.slice(before), [{ _tag: "Loaded", run: "run_d", step: 1 }])
      // The same broadcast of a run that was unloaded is loaded again when there is room.
      yield* fs.remove(`${root}/run_c`, { recursive: true })
      yield* look
      yield* look
      assert.deepStrictEqual(yield* loaded, ["base@0", "run_d@1", "run_a@1"])
    }).pipe(Effect.provide(disk)),
  )

  it.effect("loads the broadcast of a run that was made again between two looks, although its step is the same", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const { root, engine, reports, options } = yield* following()
      const look = yield* Effect.provideService(makeLook(options), Engine, engine)
      const again = Effect.fnUntraced(function* (token: string) {
        yield* fs.remove(`${root}/run_a`, { recursive: true, force: true })
        yield* fs.makeDirectory(`${root}/run_a/control`, { recursive: true })
        yield* fs.writeFileString(`${root}/run_a/control/token`, token)
        yield* publish(`${root}/run_a`, 5)
        yield* look
        yield* look
      })
      yield* again("first")
      assert.lengthOf(reports, 1)
      yield* again("second")
      assert.deepStrictEqual(
        reports,
        [5, 5].map((step) => ({ _tag: "Loaded", run: "run_a", step })),
      )
    }).pipe(Effect.provide(disk)),
  )

  it.effect("follows a single run, and loads weights of the whole model", () =>
    Effect.gen(function* () {
      const { root, engine, options, loaded } = yield* following((root) => `${root}/run_a`)
      const look = yield* Effect.provideService(makeLook(options), Engine, engine)
      yield* look
      yield* publish(`${root}/run_a`, 4, "full")
      yield* look
      assert.deepStrictEqual(yield* loaded, ["base@4"])
    }).pipe(Effect.provide(disk)),
  )

  it.effect("looks again and again", () =>
    Effect.gen(function* () {
      const { root, engine, reports, options } = yield* following()
      const fiber = yield* Effect.forkChild(Effect.provideService(Effect.flatten(follow(options)), Engine, engine))
      for (const step of [1, 2]) {
        yield* publish(`${root}/run_a`, step)
        while (reports.length < step) {
          yield* TestClock.adjust("100 millis")
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        }
      }
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(
        reports.map((one) => ("step" in one ? one.step : -1)),
        [1, 2],
      )
    }).pipe(Effect.provide(disk)),
  )
})
