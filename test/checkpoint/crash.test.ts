/** A process that is stopped in the middle of saving a checkpoint, at every change of the disk in turn. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Path } from "effect"
import * as Checkpoint from "../../src/checkpoint/Checkpoint.ts"
import type { RunFiles } from "../../src/experiment/RunStore.ts"
import { brokenDisk } from "../experiment/brokenDisk.ts"
import { disk, openRun, temporaryDirectory } from "../experiment/disk.ts"

const save = (run: RunFiles, name: string, step: number, content: string) =>
  Checkpoint.save(run, {
    name,
    step,
    score: null,
    strategy: { _tag: "LastN", keep: 1 },
    files: { "weights.safetensors": new TextEncoder().encode(content), "runtime.json": new Uint8Array(1000) },
  })

const contentOf = ({ files }: Checkpoint.Loaded): string => new TextDecoder().decode(files["weights.safetensors"])

/** Saves "old", then "new" on a disk that breaks at the given change: true when it got through all the same. */
const crashAt = Effect.fnUntraced(function* (at: number, names: { readonly old: string; readonly new: string }) {
  const resultsDir = yield* temporaryDirectory
  const run = yield* openRun({ resultsDir })
  yield* run.write("config.yaml", "")
  yield* save(run, names.old, 1, "old")
  const { layer } = brokenDisk({ at, code: "EIO" })
  const broken = yield* openRun({ resultsDir, resume: run.directory }).pipe(
    Effect.provide(Layer.merge(layer, Path.layer)),
  )
  const survived = (yield* Effect.result(save(broken, names.new, 2, "new")))._tag === "Success"

  const after = yield* openRun({ resultsDir, resume: run.directory })
  const loaded = yield* Checkpoint.load(after, "latest")
  assert.include(survived ? ["new"] : ["old", "new"], contentOf(loaded), `broken at change ${at}`)
  assert.deepEqual(loaded.skipped, [], `broken at change ${at}`)
  // And the next one can be saved.
  yield* save(after, "ep_000003", 3, "newest")
  assert.strictEqual(contentOf(yield* Checkpoint.load(after, "latest")), "newest")
  assert.deepEqual(yield* after.list("checkpoints"), ["ep_000003", "latest", "latest.json"], `broken at change ${at}`)
  return survived
})

describe("a checkpoint whose saving is stopped anywhere", () => {
  for (const [what, names] of [
    ["leaves the one before, or is whole", { old: "ep_000001", new: "ep_000002" }],
    ["under the name of the one before, leaves that, or is whole", { old: "ep_000001", new: "ep_000001" }],
  ] as const) {
    it.effect(what, () =>
      Effect.gen(function* () {
        let at = 1
        while (!(yield* crashAt(at, names))) at++
        assert.isAtLeast(at, 15)
      }).pipe(Effect.provide(disk)),
    )
  }
})
