import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { inCamelCase, runsIn } from "./crash.ts"
import { effect, program, withFolder, write } from "./effect.ts"

describe("effect run --seeds", () => {
  it("trains with each, side by side, and says how sure one can be of their mean", () =>
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
    }))

  it("goes on when one fails, and fails at the end", () =>
    withFolder(async (folder) => {
      const file = write(
        folder,
        "train.ts",
        program("").replace("CartPole.env,", 'process.argv.includes("2") ? "Nowhere-v0" : CartPole.env,'),
      )
      const outcome = await effect(["run", file, "--seeds", "1..3", "--results-dir", join(folder, "results"), "--json"])
      assert.strictEqual(outcome.code, 1)
      assert.include(outcome.stderr, "1 of 3 seeds failed")
      const { seeds, score } = JSON.parse(outcome.stdout)
      assert.include(seeds[1].failed, 'unknown env "Nowhere-v0"')
      assert.strictEqual(score.runs, 2)
    }))

  it("counts one that ends without a result as failed, however it ends", () =>
    withFolder(async (folder) => {
      const odd = [
        'if (process.argv.includes("1")) { console.log("bye"); process.exit(0) }',
        'if (process.argv.includes("2")) process.kill(process.pid, "SIGKILL")',
      ]
      const file = write(folder, "train.ts", `${program("")}${odd.join("\n")}\n`)
      const outcome = await effect(["run", file, "--seeds", "1..3", "--results-dir", join(folder, "results"), "--json"])
      assert.strictEqual(outcome.code, 1, outcome.stderr)
      const { seeds, score } = JSON.parse(outcome.stdout)
      assert.isNotEmpty(seeds[0].failed)
      assert.strictEqual(seeds[1].failed, "ended by SIGKILL")
      assert.strictEqual(score.runs, 1)
    }))

  for (const [args, message] of [
    [["--seeds", "5..1"], "--seeds 5..1: expected seeds like 1..10 or 1,2,5, none of them twice"],
    [["--seeds", "1,1"], "--seeds 1,1: expected seeds like 1..10 or 1,2,5, none of them twice"],
    [["--seeds", "1", "--seed", "2"], "--seeds and --seed don't go together"],
    [["--seeds", "1", "--jobs", "0"], "--jobs 0: expected at least 1"],
  ] as const) {
    it(`refuses ${args.join(" ")}`, async () => {
      const outcome = await effect(["run", "examples/cartpole.ts", ...args])
      assert.strictEqual(outcome.code, 2)
      assert.include(outcome.stderr, message)
    })
  }
})
