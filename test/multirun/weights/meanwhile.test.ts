import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, FileSystem, Layer } from "effect"
import { configOf, resultsFolder, runConfig, trained } from "../smallTraining.ts"

describe("the broadcasts of a trainer", () => {
  // If the trainer waited for the files, this test would not end. It is skipped because it sometimes does not end: find out
  // why, and run it again.
  it.live.skip("are written while the next turn is trained", () =>
    Effect.gen(function* () {
      const trainedNext = yield* Deferred.make<void>()
      let written = 0
      /** The number of reports of updates: a run and its trainer each report an update. */
      let reports = 0
      /** A disk on which the first broadcasts of the runs wait until there was a second update. */
      const disk = Layer.effect(
        FileSystem.FileSystem,
        Effect.map(FileSystem.FileSystem, (fs) => ({
          ...fs,
          rename: (from: string, to: string) =>
            /broadcast.step_1$/.test(to)
              ? Effect.andThen(
                  Deferred.await(trainedNext),
                  Effect.tap(fs.rename(from, to), () => Effect.sync(() => void written++)),
                )
              : fs.rename(from, to),
        })),
      ).pipe(Layer.provide(NodeServices.layer))
      const config = { ...configOf({ a: runConfig(1), b: runConfig(2) }), broadcast: { keep: 3 } }
      yield* trained(config, {
        resultsDir: yield* resultsFolder,
        disk,
        onEvent: ({ _tag }) => {
          if (_tag === "UpdateApplied" && ++reports === 3) Deferred.doneUnsafe(trainedNext, Effect.void)
        },
      })
      assert.strictEqual(written, 2)
    }).pipe(Effect.scoped),
  )
})
