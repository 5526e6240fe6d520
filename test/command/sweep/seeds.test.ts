import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { inCamelCase, runsIn } from "../cli/crash.ts"
import { effect, program, withFolder, write } from "../cli/effect.ts"

describe("effect run --seeds", () => {
  it("trains with each, side by side, and says how sure one can be of their mean", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("validation: { everySteps: 1024, episodes: 4 }"))
      const results = join(folder, "results")
      const outcome = await effect([
        "run",
        file,
        "--seeds",
        "3..4,9",
        "--jobs",
        "2",
        "--results-dir",
        results,
        "--json",
      ])
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      const runs = runsIn(results)
      assert.deepEqual(runs.map((run) => run.slice(-4)).toSorted(), ["0003", "0004", "0009"])
      assert.strictEqual(new Set(runs.map((run) => dirname(run))).size, 1)

      const metrics = JSON.parse(outcome.stdout)
      const text = readFileSync(join(dirname(runs[0]), "metrics.json"), "utf8")
      assert.deepEqual(inCamelCase(JSON.parse(text)), metrics)
      // The file's keys are in snake_case, as all files' are; what is printed is not.
      assert.isNumber(JSON.parse(text).seeds[0].wall_seconds)
      assert.isNumber(metrics.seeds[0].wallSeconds)
      assert.deepEqual(
        metrics.seeds.map(({ seed }: { readonly seed: number }) => seed),
        [3, 4, 9],
      )
      const scores = metrics.seeds.map(({ score }: { readonly score: number }) => score)
      assert.closeTo(metrics.score.mean, (scores[0] + scores[1] + scores[2]) / 3, 1e-9)
      assert.isTrue(metrics.score.low <= metrics.score.iqm && metrics.score.iqm <= metrics.score.high)
      assert.deepEqual(
        metrics.curve.map(({ step }: { readonly step: number }) => step),
        [1024, 2048],
      )

      // A seed among others is the run that it is alone.
      const alone = await effect([
        "run",
        file,
        "--seed",
        "4",
        "--results-dir",
        join(folder, "alone"),
        "--json",
        "--quiet",
      ])
      assert.strictEqual(JSON.parse(alone.stdout).digest, metrics.seeds[1].digest)
    }),
  )

  for (const [args, message] of [
    [["--seeds", "5..1"], "--seeds 5..1: expected seeds like 1..10 or 1,2,5, none of them twice"],
    [["--seeds", "1..30000000"], "--seeds 1..30000000: expected at most 10000 seeds, found 30000000"],
    [["--seeds", "1..10000,10001..20000"], "--seeds 1..10000,10001..20000: expected at most 10000 seeds, found 20000"],
    [["--seeds", "1,1"], "--seeds 1,1: expected seeds like 1..10 or 1,2,5, none of them twice"],
    [["--seeds", "1", "--seed", "2"], "--seeds and --seed exclude each other"],
    [["--seeds", "1", "--jobs", "0"], '--jobs: "0". Expected: a value between 1 and 1024 (each is a process)'],
  ] as const) {
    it(`refuses ${args.join(" ")}`, async () => {
      const outcome = await effect(["run", "examples/cartpole.ts", ...args])
      assert.strictEqual(outcome.code, 2)
      assert.include(outcome.stderr, message)
    })
  }
})
