import { assert, describe, it } from "vitest"
import { Effect } from "effect"
import { configOf, resultsFolder, runConfig, runFiles, trained, validated } from "./smallTraining.ts"

describe("a multi-run training", () => {
  it("gives the same digest for the same seed, and another one for another seed", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const runs = { a: runConfig(1, validated), b: runConfig(2, validated) }
        const first = yield* trained(configOf(runs), { resultsDir })
        const again = yield* trained(configOf(runs), { resultsDir })
        const other = yield* trained(configOf(runs, { seed: 2 }), { resultsDir })
        assert.strictEqual(again.digest, first.digest)
        assert.notStrictEqual(other.digest, first.digest)
        assert.strictEqual(first.steps, 6)
        assert.strictEqual(first.episodes, 48)
        assert.deepStrictEqual(runFiles(first.runDir, "a").weightsAt(3), runFiles(again.runDir, "a").weightsAt(3))
        assert.notDeepEqual(runFiles(first.runDir, "a").weightsAt(3), runFiles(other.runDir, "a").weightsAt(3))
      }).pipe(Effect.scoped),
    ),
  )
})
