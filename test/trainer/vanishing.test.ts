/** Somebody deletes the folder of a run, or makes it again, at every moment of every write into it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Path } from "effect"
import { writeRollouts } from "../../src/trainer/batches/rolloutFiles.ts"
import type { RunFolder } from "../../src/trainer/runs/guardedFolder.ts"
import { broadcast, writeWeights } from "../../src/trainer/weights/Broadcasts.ts"
import { saveCheckpoint } from "../../src/trainer/weights/checkpoints.ts"
import { disk } from "../run/store/disk.ts"
import { filesBelow, reopen, temporaryRunFolder } from "./folders.ts"

/** The machine's disk, whose flushes do nothing, because they take most of the time. */
const unflushed = Layer.merge(
  Layer.effect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (fs) => ({
      ...fs,
      open: (...args: Parameters<typeof fs.open>) =>
        Effect.map(
          fs.open(...args),
          (file) =>
            new Proxy(file, { get: (target, key) => (key === "sync" ? Effect.void : Reflect.get(target, key)) }),
        ),
    })),
  ).pipe(Layer.provide(disk)),
  Path.layer,
)

/** This disk, on which `event` happens just before the operation with this number; reading counts too. */
const diskWith = (event: Effect.Effect<void, unknown>, at: number) => {
  /** Counting begins when the folder is open. */
  const operations = { count: -Infinity }
  const counted = <A, E>(operation: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => (++operations.count === at ? Effect.andThen(Effect.orDie(event), operation) : operation))
  const layer = Layer.effect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (fs) => ({
      ...fs,
      makeDirectory: (...args: Parameters<typeof fs.makeDirectory>) => counted(fs.makeDirectory(...args)),
      open: (...args: Parameters<typeof fs.open>) => Effect.andThen(counted(Effect.void), fs.open(...args)),
      readDirectory: (...args: Parameters<typeof fs.readDirectory>) => counted(fs.readDirectory(...args)),
      readFile: (...args: Parameters<typeof fs.readFile>) => counted(fs.readFile(...args)),
      exists: (...args: Parameters<typeof fs.exists>) => counted(fs.exists(...args)),
      stat: (...args: Parameters<typeof fs.stat>) => counted(fs.stat(...args)),
      remove: (...args: Parameters<typeof fs.remove>) => counted(fs.remove(...args)),
      rename: (...args: Parameters<typeof fs.rename>) => counted(fs.rename(...args)),
      symlink: (...args: Parameters<typeof fs.symlink>) => counted(fs.symlink(...args)),
    })),
  ).pipe(Layer.provide(unflushed))
  return { layer: Layer.merge(layer, Path.layer), operations }
}

const bytes = new Uint8Array(9)
const samples = [
  {
    id: "a",
    tokens: new Int32Array(2),
    mask: new Uint8Array(2),
    logprobs: new Float32Array(2),
    advantages: new Float32Array(2),
    temperature: 1,
  },
]

type Write = (folder: RunFolder, step: number) => Effect.Effect<void, unknown>

const writes: Readonly<Record<string, Write>> = {
  "a broadcast": (folder, step) =>
    broadcast(folder, step, {
      keep: 1,
      contents: Effect.succeed({ "adapter_model.safetensors": bytes, "adapter_config.json": bytes }),
    }),
  "a checkpoint": (folder, step) =>
    saveCheckpoint(folder, {
      progress: { step, totalTokens: 1, totalSamples: 1 },
      parts: { "adapter.safetensors": bytes },
      keep: 1,
    }),
  "weights for others": (folder, step) =>
    writeWeights(folder, step, {
      parent: "weights",
      keep: 1,
      contents: Effect.succeed({ "model.safetensors": bytes }),
    }),
  samples: (folder, step) => writeRollouts(folder, { step, samples }),
}

/** Runs a write at whose `at`-th operation the event happens. Returns the paths that exist afterwards. */
const after = (
  write: Write,
  at: number,
  eventIn: (fs: FileSystem.FileSystem, directory: string) => Effect.Effect<void, unknown>,
) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const folder = yield* temporaryRunFolder
    yield* folder.tree.write("control/token", "of this run")
    yield* write(folder, 4)
    const { layer, operations } = diskWith(eventIn(fs, folder.directory), at)
    const opened = yield* reopen(folder).pipe(Effect.provide(layer))
    operations.count = 0
    yield* Effect.result(write(opened, 5))
    const isOver = operations.count < at
    const paths = (yield* fs.exists(folder.directory)) ? yield* filesBelow(folder.directory) : undefined
    return { isOver, paths }
  }).pipe(Effect.scoped, Effect.provide(unflushed))

/** Deletes a folder at once, whatever else is being written into it at this moment. */
const deleted = (fs: FileSystem.FileSystem, directory: string) => {
  const aside = `${directory}-deleted`
  return Effect.andThen(fs.rename(directory, aside), fs.remove(aside, { recursive: true }))
}

describe("a run's folder", () => {
  for (const [title, write] of Object.entries(writes)) {
    it.effect(
      `that is deleted at any moment of writing ${title} stays deleted`,
      () =>
        Effect.gen(function* () {
          let at = 1
          for (; ; at++) {
            const { isOver, paths } = yield* after(write, at, deleted)
            if (isOver) break
            assert.isUndefined(paths, `deleted before operation ${at}`)
          }
          assert.isAtLeast(at, 5)
        }),
      { tags: title === "weights for others" ? [] : "slow" },
    )

    const own = ["broadcast", "checkpoints", "configs", "rollouts", "weights"]
    it.effect(
      `that is made again at any moment of writing ${title} gets none of it`,
      () =>
        Effect.gen(function* () {
          for (let at = 1; ; at++) {
            const { isOver, paths } = yield* after(write, at, (fs, directory) =>
              Effect.gen(function* () {
                yield* deleted(fs, directory)
                for (const folder of own) yield* fs.makeDirectory(`${directory}/${folder}`, { recursive: true })
              }),
            )
            if (isOver) break
            // What was written at that very moment can remain under a temporary name, which the next write removes.
            const foreign = (paths ?? []).filter((path) => !own.includes(path) && !/^[a-z]+\/\.[^/]+\.tmp/.test(path))
            assert.deepEqual(foreign, [], `made again before operation ${at}`)
          }
        }),
      { tags: title === "samples" ? [] : "slow" },
    )
  }
})
