import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Logger, Path } from "effect"
import type { RunFolder } from "../../../src/trainer/runs/guardedFolder.ts"
import { loadCheckpoint, saveCheckpoint, settleCheckpoint } from "../../../src/trainer/weights/checkpoints.ts"
import * as Checkpoint from "../../../src/run/Checkpoint.ts"
import { brokenDisk } from "../../run/store/brokenDisk.ts"
import { disk } from "../../run/store/disk.ts"
import { filesBelow, reopen, temporaryRunFolder } from "../folders.ts"
import { isGone } from "../../../src/trainer/TrainerError.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

const withFolder = <E>(body: (folder: RunFolder) => Effect.Effect<void, E, FileSystem.FileSystem | Path.Path>) =>
  Effect.flatMap(temporaryRunFolder, body).pipe(Effect.provide(disk))

const progressAt = (step: number) => ({ step, totalTokens: step * 100, totalSamples: step * 8 })

const save = (folder: RunFolder, step: number, keep: number | null = null) =>
  saveCheckpoint(folder, {
    progress: progressAt(step),
    parts: { "adapter.safetensors": bytes(`adapter ${step}`), "optimiser.safetensors": new Uint8Array(9) },
    keep,
  })

/** The checkpoint at which a run begins, and the warnings. */
const resumed = (folder: RunFolder, resumeStep = -1) =>
  Effect.gen(function* () {
    const warnings: Array<string> = []
    const logger = Logger.make(({ message }) => void warnings.push(String(message)))
    const loaded = yield* loadCheckpoint(folder, resumeStep).pipe(Effect.provide(Logger.layer([logger])))
    const adapter = loaded === undefined ? undefined : new TextDecoder().decode(loaded.parts["adapter.safetensors"])
    return { progress: loaded?.progress, adapter, warnings }
  })

describe("the checkpoints of a run in a trainer", () => {
  it.effect("come back with their progress and parts: the newest, or the one of a step", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        assert.deepEqual(yield* resumed(folder), { progress: undefined, adapter: undefined, warnings: [] })
        for (const step of [9, 10]) yield* save(folder, step)
        assert.deepEqual(yield* filesBelow(`${folder.directory}/checkpoints/step_9`), [
          "STABLE",
          "adapter.safetensors",
          "manifest.json",
          "optimiser.safetensors",
          "progress.json",
        ])
        // Other names do not matter.
        yield* folder.tree.write("checkpoints/step_best/adapter.safetensors", "")
        assert.deepEqual(yield* resumed(folder), { progress: progressAt(10), adapter: "adapter 10", warnings: [] })
        assert.deepEqual(yield* resumed(folder, 9), { progress: progressAt(9), adapter: "adapter 9", warnings: [] })
        assert.deepEqual((yield* resumed(folder, 0)).progress, undefined)
        const { message } = yield* Effect.flip(loadCheckpoint(folder, 8))
        assert.include(message, "checkpoints/step_8: expected a checkpoint, found none by this name")
        const { parts } = (yield* loadCheckpoint(folder, -1)) ?? { parts: {} }
        assert.deepEqual(Object.keys(parts).sort(), ["adapter.safetensors", "optimiser.safetensors"])
      }),
    ),
  )

  it.effect("are pruned to the newest", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        for (const step of [1, 2, 3]) yield* save(folder, step, 2)
        assert.deepEqual(yield* folder.tree.list("checkpoints"), ["latest", "latest.json", "step_2", "step_3"])
      }),
    ),
  )

  const damages: Readonly<Record<string, (folder: RunFolder) => Effect.Effect<void, { readonly message: string }>>> = {
    "step_3/STABLE: the file is missing": ({ tree }) => tree.remove("checkpoints/step_3/STABLE"),
    "step_3/manifest.json: the file is missing": ({ tree }) => tree.remove("checkpoints/step_3/manifest.json"),
    "step_3/adapter.safetensors: the content differs from the manifest's digest": ({ tree }) =>
      tree.write("checkpoints/step_3/adapter.safetensors", "adapter 4"),
    "step_3/progress.json: expected 60 bytes, found 2": ({ tree }) =>
      tree.write("checkpoints/step_3/progress.json", "{}"),
  }
  for (const [problem, damage] of Object.entries(damages)) {
    it.effect(`that are damaged are skipped with a warning: ${problem}`, () =>
      withFolder((folder) =>
        Effect.gen(function* () {
          for (const step of [2, 3]) yield* save(folder, step)
          yield* damage(folder)
          const warning = `a damaged checkpoint is skipped: ${folder.directory}/checkpoints/${problem}`
          assert.deepEqual(yield* resumed(folder), {
            progress: progressAt(2),
            adapter: "adapter 2",
            warnings: [warning],
          })
          // The one that is asked for by its step is not replaced by another.
          const error = yield* Effect.flip(loadCheckpoint(folder, 3))
          assert.strictEqual(error.message, `${folder.directory}/checkpoints/${problem}`)
          yield* folder.tree.remove("checkpoints/step_2")
          assert.strictEqual((yield* Effect.flip(loadCheckpoint(folder, -1))).message, error.message)
        }),
      ),
    )
  }

  it.effect("that were being replaced, or have another step than their folder, are told apart", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const at = (name: string) => `${folder.directory}/checkpoints/${name}`
        for (const step of [2, 3]) yield* save(folder, step)
        // A process that is killed while it replaces a checkpoint leaves the old one under this name.
        yield* fs.rename(at("step_3"), at(".step_3.old"))
        assert.deepEqual(yield* resumed(folder), { progress: progressAt(3), adapter: "adapter 3", warnings: [] })
        yield* fs.rename(at("step_3"), at("step_7"))
        const { progress, warnings } = yield* resumed(folder)
        assert.deepEqual(progress, progressAt(2))
        assert.deepEqual(warnings, [
          `a damaged checkpoint is skipped: ${at("step_7")}/progress.json: expected step 7, found 3`,
        ])
      }),
    ),
  )

  it.effect(
    "survive a save that is stopped at any change of the disk",
    () =>
      withFolder((folder) =>
        Effect.gen(function* () {
          let at = 0
          for (let isDone = false; !isDone;) {
            at++
            yield* folder.tree.remove("checkpoints")
            yield* save(folder, 1, 1)
            const { layer } = brokenDisk({ at, code: "EIO" })
            const broken = yield* reopen(folder).pipe(Effect.provide(Layer.merge(layer, Path.layer)))
            isDone = (yield* Effect.result(save(broken, 2, 1)))._tag === "Success"
            const { progress, adapter, warnings } = yield* resumed(folder)
            assert.include(isDone ? [2] : [1, 2], progress?.step, `broken at change ${at}`)
            assert.deepEqual([adapter, warnings], [`adapter ${progress?.step}`, []], `broken at change ${at}`)
            yield* settleCheckpoint(folder, { step: progress?.step ?? NaN, keep: 1 })
            const settled = `step_${progress?.step}`
            assert.deepEqual(yield* folder.tree.list("checkpoints"), ["latest", "latest.json", settled])
            assert.strictEqual(yield* Checkpoint.latestName(folder.tree), settled)
            assert.include(yield* folder.tree.readText("checkpoints/latest.json"), `"${settled}"`)
            yield* save(folder, 3, 1)
            assert.deepEqual(yield* folder.tree.list("checkpoints"), ["latest", "latest.json", "step_3"])
          }
          assert.isAtLeast(at, 15)
        }),
      ),
    { tags: "slow" },
  )

  it.effect("are not saved into a folder that is gone", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        yield* fs.remove(folder.directory, { recursive: true })
        assert.isTrue(isGone(yield* Effect.flip(save(folder, 1))))
        assert.isFalse(yield* fs.exists(folder.directory))
      }),
    ),
  )
})
