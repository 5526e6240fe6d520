import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { RetryDelays } from "../../src/trainer/machine.ts"
import type { RunEvent } from "../../src/run/record/RunEvent.ts"
import { diskError } from "../run/store/brokenDisk.ts"
import { makeBadDisk } from "./badDisk.ts"
import { configOf, resultsFolder, runConfig, runFiles, trained } from "./smallTraining.ts"

const config = configOf({ a: runConfig(1, { checkpoint: { every: 1 } }), b: runConfig(2) })

/** Trains on a disk that fails so many times when a checkpoint of the run `a` is put into its place. */
const onFailingDisk = Effect.fnUntraced(function* (code: string, failures: number) {
  const resultsDir = yield* resultsFolder
  const { disk, layer } = makeBadDisk()
  const events: Array<RunEvent> = []
  let runDir = ""
  let left = failures
  disk.before = (operation, path) =>
    operation === "rename" && path.includes("run_a/checkpoints/.step_") && left-- > 0 ? diskError(code) : undefined
  const exit = yield* Effect.result(
    trained(config, {
      resultsDir,
      disk: layer,
      onOpen: (directory) => void (runDir = directory),
      onEvent: (event) => void events.push(event),
    }).pipe(Effect.provideService(RetryDelays, [0, 0])),
  )
  const warnings = events.flatMap((event) => (event._tag === "Warning" ? [event.message] : []))
  return { resultsDir, runDir, exit, warnings }
})

describe("a trainer whose disk is full", () => {
  for (const code of ["ENOSPC", "EMFILE", "EIO", "EACCES"]) {
    it(`ends, evicts no run, and can be resumed to the same weights (${code})`, { tags: "slow" }, () =>
      Effect.gen(function* () {
        const whole = yield* trained(config, { resultsDir: yield* resultsFolder })
        const { resultsDir, runDir, exit, warnings } = yield* onFailingDisk(code, Infinity)
        assert.match(
          exit._tag === "Failure" ? exit.failure.message : "",
          /run_a: cannot write .*this is no fault of the run, which was not evicted: repair it and resume the trainer$/,
        )
        assert.match(warnings.join("\n"), /run_a: its checkpoint: cannot write .*; trying again in 0 s/)
        for (const run of ["a", "b"]) assert.isUndefined(runFiles(runDir, run).evicted(), run)
        const resumed = yield* trained(config, { resultsDir, resume: runDir })
        assert.strictEqual(resumed.digest, whole.digest)
      }).pipe(Effect.scoped, Effect.runPromise),
    )
  }

  it("goes on if the disk has space again soon", () =>
    Effect.gen(function* () {
      const { exit, runDir } = yield* onFailingDisk("ENOSPC", 2)
      assert.strictEqual(exit._tag, "Success")
      assert.isUndefined(runFiles(runDir, "a").evicted())
    }).pipe(Effect.scoped, Effect.runPromise))
})
