import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { toPath } from "../../../src/run/identifier.ts"
import { effect, root } from "./effect.ts"

let results = ""
beforeAll(() => {
  results = mkdtempSync(join(root, ".tmp-"))
  train("ppo", "CartPole-v1", [500, 490, 480, 470, 500])
  train("a2c", "CartPole-v1", [300, 310, 290, 480, 320])
  train("ppo", "Acrobot-v1", [-90, -85, -100, -80, -95])
  train("a2c", "Acrobot-v1", [-100, -105, -95, -110, -98])
  train("a2c", "Pendulum-v1", [-1000])
  train("one", "CartPole-v1", [7])
})
afterAll(() => rmSync(results, { recursive: true, force: true }))

/** Writes runs of seeds 1, 2 … as a training leaves them, in a folder of the algorithm. */
const train = (algorithm: string, environment: string, scores: ReadonlyArray<number>): void => {
  for (const [index, mean] of scores.entries()) {
    const population = { environment, algorithm }
    const identity = { time: "2026-01-31_12-00-00", commit: "no-hash", name: "bench", population, seed: index + 1 }
    const put = (name: string, text: string): void => {
      const file = join(results, algorithm, toPath(identity), name)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
    }
    put("config.yaml", `env: ${environment}\nalgorithm: { name: ${algorithm} }\n`)
    const record = {
      returns_mean: mean,
      returns_std: 0,
      episode_length_mean: 1,
      episode_length_std: 0,
      returns: [mean],
    }
    put("return.json", JSON.stringify([{ step: 1000, ...record }]))
    put("metrics.json", JSON.stringify({ steps: 1000, wall_seconds: index + 1, validation: { mean_return: mean } }))
  }
}

const compare = (...args: ReadonlyArray<string>) => effect(["runs", "compare", ...args], results)
const comparisonOf = async (...args: ReadonlyArray<string>) => {
  const done = await compare(...args, "--json")
  assert.strictEqual(done.code, 0, done.stderr)
  return JSON.parse(done.stdout)
}

describe("effect runs compare", () => {
  it("compares two algorithms in each environment and over all of them", async () => {
    const { sides, comparisons } = await comparisonOf("a2c", "ppo")
    assert.deepEqual([sides[0].label, sides[1].label, sides[1].runs.length], ["a2c", "ppo", 10])
    const [{ left, right, environments, overall, profiles, leftOut }] = comparisons
    assert.deepEqual([left, right, leftOut], ["a2c", "ppo", ["Pendulum-v1"]])
    const [acrobot, cartpole] = environments
    assert.deepEqual([acrobot.environment, cartpole.environment], ["Acrobot-v1", "CartPole-v1"])
    assert.closeTo(cartpole.difference.value, 490 - 310, 1e-9)
    assert.isTrue(cartpole.difference.low > 0 && cartpole.difference.high > cartpole.difference.value)
    // 23.5 of 25 pairs: 480 is in both, and 480 is above 470.
    assert.strictEqual(cartpole.improvement.value, 23.5 / 25)
    assert.isBelow(cartpole.p, 0.05)
    assert.isBelow(overall.p, cartpole.p)
    assert.strictEqual(profiles[0].threshold, 0)
  })

  it("prints a table with profiles, or comma-separated values", async () => {
    const { stdout } = await compare("a2c", "ppo", "--label", "A2C", "--label", "PPO")
    assert.match(stdout, /PPO − A2C +CartPole-v1 +5, 5 +310 +490 +\+180 +[\d.]+ to [\d.]+ /)
    assert.match(stdout, /PPO − A2C +all \(normalised\) +10, 10 /)
    assert.match(stdout, /runs that score above +0\.25 +0\.5 +0\.75 +0\.9\nA2C +\d+ %/)
    const csv = (await compare("a2c", "ppo", "ppo", "--csv", "--label", "a, b", "--label", "c", "--label", "d")).stdout
    const rows = csv.trim().split("\n")
    assert.lengthOf(rows, 7)
    assert.match(rows[0], /^left,right,environment,left_runs,right_runs,left_iqm,.*,p,smallest_p$/)
    assert.match(rows[2], /^"a, b",c,CartPole-v1,5,5,310,490,180,/)
    // The third set of runs is compared with the first one, too.
    assert.strictEqual(rows[5], rows[2].replace(",c,", ",d,"))
  })

  it("compares another metric, of which less is better", async () => {
    const [{ environments }] = (await comparisonOf("ppo", "one", "--by", "wall_seconds", "--lowest")).comparisons
    const [{ left, right, difference, improvement }] = environments
    assert.deepEqual([left, right, difference.value, improvement.value], [3, 1, -2, 0.9])
  })

  it("says what few runs cannot show", async () => {
    const few = (name: string) => join(name, "2026-01-31_12-00-00", "no-hash_bench_environment_algorithm")
    const single = await compare(few("ppo"), few("one"))
    assert.match(single.stdout, /CartPole-v1 +5, 1 +490 +7 +-483 +- +0 +- +-\n/)
    assert.include(single.stderr, "one run on a side has no interval and no p-value; train more seeds")
    train("three", "CartPole-v1", [1, 2, 3])
    const three = await compare("three", "ppo")
    assert.include(
      three.stderr,
      "with 3 runs on a side, an interval of 95 % holds the true difference only 80 % of the time",
    )
    train("two", "CartPole-v1", [1, 2])
    assert.include(
      (await compare("three", "two")).stderr,
      "so few runs cannot have a p-value below 0.2, whatever their scores",
    )
  })

  it("finds the seeds of one group by a part of their paths, and refuses a mixture", async () => {
    for (const algorithm of ["ppo", "a2c"]) cpSync(join(results, algorithm), join(results, "all"), { recursive: true })
    const parts = ["CartPole-v1_a2c", "CartPole-v1_ppo", "--results-dir", "all"]
    const { sides } = await comparisonOf(...parts)
    assert.deepEqual(
      sides.map(({ label, runs }: { readonly label: string; readonly runs: ReadonlyArray<unknown> }) => [
        label,
        runs.length,
      ]),
      [["a2c", 5], ["ppo", 5]], // prettier-ignore
    )
    const several = await compare("_a2c", "CartPole-v1_ppo", "--results-dir", "all")
    assert.strictEqual(several.code, 2)
    assert.include(several.stderr, "11 runs have this in their paths")
    mkdirSync(join(results, "results"))
    for (const [args, message] of [
      [["ppo", "nothing"], "nothing: there are no runs in results"],
      [["ppo", "results"], "results: expected a finished run, found no return.json"],
      [
        [".", "ppo"],
        ".: expected runs of Acrobot-v1 that differ only in their seeds, found a2c, ppo; name one of them",
      ],
      [["ppo", "a2c", "--by", "walls"], "--by walls: "],
      [["ppo", "a2c", "--label", "a"], "--label: expected 2 names, found 1"],
      [["ppo", "a2c", "--csv", "--json"], "--json and --csv exclude each other"],
    ] as const) {
      const refused = await compare(...args)
      assert.strictEqual(refused.code, 2)
      assert.include(refused.stderr, message)
    }
  })
})
