import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, FileSystem, Layer } from "effect"
import { configOf, resultsFolder, runConfig, trained } from "../smallTraining.ts"

describe("the broadcasts of a trainer", () => {
  // If the trainer waited for the files, this test would not end.
  it.live("are written while the next turn is trained", () =>
    Effect.gen(function* () {
      const [asked, trainedNext] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      let written = 0
      /** The number of reports of updates: a run and its trainer each report an update. */
      let reports = 0
      /**
       * Delays a folder, so that the first turn trains only run a, and the second only run b: the samples of b wait for
       * the broadcast of a; this broadcast and the next samples of a wait for the update of b.
       */
      const before = (folder: string) => {
        if (/run_b.rollouts.step_0$/.test(folder)) return Deferred.await(asked)
        if (/run_a.rollouts.step_1$/.test(folder)) return Deferred.await(trainedNext)
        if (!/broadcast.step_1$/.test(folder)) return Effect.void
        return Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(trainedNext))
      }
      const disk = Layer.effect(
        FileSystem.FileSystem,
        Effect.map(FileSystem.FileSystem, (fs) => ({
          ...fs,
          rename: (from: string, to: string) =>
            Effect.andThen(before(to), fs.rename(from, to)).pipe(
              Effect.tap(() => Effect.sync(() => void (/broadcast.step_1$/.test(to) && written++))),
            ),
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
