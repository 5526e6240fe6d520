import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { RunCommand } from "../../../src/command/sweep/child.ts"
import { type TrainFlags, runCommand } from "../../../src/command/sweep/command.ts"
import type { PlannedRun } from "../../../src/command/sweep/plan.ts"
import { makeTrainRun } from "../../../src/command/sweep/trainRun.ts"
import { CommandError } from "../../../src/command/CommandError.ts"

const time = "2026-01-31_12-00-00"

const flagsWith = (threads: number | "auto"): TrainFlags => ({
  file: "train.ts",
  config: Option.none(),
  set: [],
  totalSteps: Option.none(),
  backend: "auto",
  threads: Option.some(threads),
  name: Option.none(),
  csv: false,
  trust: false,
  cluster: Option.none(),
})

const run: PlannedRun = {
  configuration: 0,
  choices: [],
  label: "seed 1",
  population: {},
  identity: { name: "train", population: {}, seed: 1 },
  effective: {},
}

/** Returns the value of `--threads` in the command that trains a run, when so many runs are trained at a time. */
const threadsOf = Effect.fnUntraced(function* (threads: number | "auto", concurrency: number) {
  const sweep = { input: flagsWith(threads), resultsDir: "results", time, commit: "no-hash", command: "", concurrency }
  let words: ReadonlyArray<string> = []
  const stop = ({ args }: { readonly args: ReadonlyArray<string> }) => {
    words = args
    return Effect.fail(CommandError.run("stopped"))
  }
  const trainRun = yield* Effect.provideService(makeTrainRun(sweep), RunCommand, stop)
  yield* Effect.flip(trainRun(run, undefined, () => {}))
  return words[words.indexOf("--threads") + 1]
})

describe("--threads of a sweep", () => {
  it.effect("is auto for a run that is trained alone, and 1 for each of several runs", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* threadsOf("auto", 1), "auto")
      assert.strictEqual(yield* threadsOf("auto", 2), "1")
      assert.strictEqual(yield* threadsOf(3, 2), "3")
    }).pipe(Effect.provide(NodeServices.layer)),
  )

  it("is repeated in the command that trains with the same settings again", () => {
    assert.strictEqual(runCommand(flagsWith("auto"), []), "npx effect run train.ts --threads auto")
  })
})
