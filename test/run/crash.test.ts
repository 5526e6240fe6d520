/** A process that is stopped in the middle of saving a checkpoint, at every change of the disk in turn. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Path } from "effect"
import * as Checkpoint from "../../src/run/Checkpoint.ts"
import type { RunFiles } from "../../src/run/store/RunStore.ts"
import { brokenDisk } from "./store/brokenDisk.ts"
import { disk, memoryRun, openRun, temporaryDirectory } from "./store/disk.ts"
import { dyingTree } from "./store/dyingTree.ts"

/** A file that comes part by part, in one buffer. */
function* parts() {
  const buffer = new Uint8Array(100)
  for (let part = 0; part < 3; part++) yield buffer.fill(part)
}

const save = (run: RunFiles, name: string, step: number, content: string, inParts = false) =>
  Checkpoint.save(run, {
    name,
    step,
    score: null,
    strategy: { _tag: "LastN", keep: 1 },
    files: {
      "weights.safetensors": new TextEncoder().encode(content),
      "runtime.json": new Uint8Array(1000),
      ...(inParts ? { "replay.bin": parts() } : {}),
    },
  })

const contentOf = ({ files }: Checkpoint.Loaded): string => new TextDecoder().decode(files["weights.safetensors"])

/** Saves "old", then "new" on a disk that breaks at the given change: true when it got through all the same. */
const crashAt = Effect.fnUntraced(function* (
  at: number,
  names: { readonly old: string; readonly new: string; readonly inParts?: boolean },
) {
  const resultsDir = yield* temporaryDirectory
  const run = yield* openRun({ resultsDir })
  yield* run.write("config.yaml", "")
  yield* save(run, names.old, 1, "old")
  const { layer } = brokenDisk({ at, code: "EIO" })
  const broken = yield* openRun({ resultsDir, resume: run.directory }).pipe(
    Effect.provide(Layer.merge(layer, Path.layer)),
  )
  const survived = (yield* Effect.result(save(broken, names.new, 2, "new", names.inParts)))._tag === "Success"

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
    [
      "with a file that comes part by part, leaves the one before, or is whole",
      { old: "ep_000001", new: "ep_000002", inParts: true },
    ],
    ["under the name of the one before, leaves that, or is whole", { old: "ep_000001", new: "ep_000001" }],
  ] as const) {
    it.effect(
      what,
      () =>
        Effect.gen(function* () {
          let at = 1
          while (!(yield* crashAt(at, names))) at++
          assert.isAtLeast(at, 15)
        }).pipe(Effect.provide(disk)),
      { tags: what === "leaves the one before, or is whole" ? [] : "slow" },
    )
  }
})

describe("a process that is killed at any file operation of a save", () => {
  const strategies: ReadonlyArray<Checkpoint.RetentionStrategy> = [
    { _tag: "LastN", keep: 0 },
    { _tag: "LastN", keep: 1 },
    { _tag: "LastN", keep: 2 },
    { _tag: "TopKValidation", keep: 1 },
    { _tag: "TopKValidation", keep: 2 },
  ]
  const saveStep = (run: RunFiles, step: number, strategy: Checkpoint.RetentionStrategy) =>
    Checkpoint.save(run, {
      name: `ep_${step}`,
      step,
      // The last one is the worst, and would be the first to go if it were not the latest.
      score: -step,
      strategy,
      files: { "weights.safetensors": new TextEncoder().encode(`weights ${step}`), "runtime.json": new Uint8Array(9) },
    })

  for (const strategy of strategies) {
    for (const done of [false, true]) {
      const when = done ? "as soon as it is done" : "before it is begun"
      it.effect(`${when} leaves an intact latest, old or new (${strategy._tag} ${strategy.keep})`, () =>
        Effect.gen(function* () {
          let operations = 0
          for (let at = 1, killed = true; killed; at++) {
            const run = yield* Effect.scoped(memoryRun)
            for (const step of [1, 2, 3]) yield* saveStep(run, step, strategy)
            const { files, live } = dyingTree(run, { at, done })
            killed = (yield* live(saveStep(files, 4, strategy))) === "killed"

            const { name, files: found, skipped } = yield* Checkpoint.load(run, "latest")
            const message = `killed at operation ${at}`
            assert.include(killed ? ["ep_3", "ep_4"] : ["ep_4"], name, message)
            assert.strictEqual(
              new TextDecoder().decode(found["weights.safetensors"]),
              `weights ${name.slice(3)}`,
              message,
            )
            assert.deepEqual(skipped, [], message)
            // The best checkpoint is not lost when a save fails.
            if (strategy._tag === "TopKValidation") yield* Checkpoint.load(run, "ep_1")
            // The next save tidies up what this one could not.
            yield* saveStep(run, 5, strategy)
            assert.strictEqual((yield* Checkpoint.load(run, "latest")).name, "ep_5", message)
            const kept = (yield* run.list("checkpoints")).filter((one) => one.startsWith("ep_"))
            const expected = strategy._tag === "LastN" ? strategy.keep : strategy.keep + 1
            if (expected > 0) assert.strictEqual(kept.length, expected, message)
            operations = at
          }
          assert.isAtLeast(operations, 4)
        }),
      )
    }
  }
})
