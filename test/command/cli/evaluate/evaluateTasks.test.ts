import { existsSync, globSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { stringify } from "yaml"
import { cells, evaluation, linesOf, told } from "../capitals.ts"
import { effect, resultOf, withFolder, write } from "../effect.ts"

describe("effect eval tasks.yaml", () => {
  it("plays agents on tasks, prints tables, leaves a run that is found again, shown again and compared", () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      const file = write(folder, "tasks.yaml", evaluation())
      const { stdout, stderr } = told(await effect(["eval", file, "--results-dir", results]))
      assert.includeMembers(cells(stdout) as Array<string>, [
        "agent | score | mean | 95 % | tasks",
        "says_rome | exact | 0.167 | 0.030 to 0.564 | 6",
        "reads | exact | 0.333 | 0.097 to 0.700 | 6",
        "reads | pass@2 | 0.333 | 0.097 to 0.700 | 6",
        "reads | part=even | 0.667 | 0.208 to 0.939 | 3",
        "agent | episodes | failed | calls | input tokens | output tokens | cost",
        "reads − says_rome | exact | +0.167 | -0.398 to 0.630 | 2 | 1 | 6 | 1 | McNemar",
      ])
      assert.include(stderr, "24 of 24 episodes (100 %)")

      const [run] = globSync(`${results}/*/*/*/*`)
      assert.include(stdout, run)
      for (const one of ["config.yaml", "run.log", "metrics.json", "return.json", "table.csv", "steps.jsonl"]) {
        assert.isTrue(existsSync(join(run, one)), one)
      }
      assert.isFalse(existsSync(join(run, "played.jsonl")))
      assert.strictEqual(linesOf(join(run, "episodes.jsonl")).length, 24)
      assert.strictEqual(linesOf(join(run, "rollouts/val/1_seen_episodes_rollouts.jsonl")).length, 12)
      const listed = JSON.parse(told(await effect(["runs", results, "--json"])).stdout)
      assert.deepInclude(listed, { path: run, name: "capitals", state: "finished", steps: 24 })
      assert.closeTo(listed.validation, 1 / 6, 1e-12)

      const refused = await effect(["eval", run, "--set", "repeats=8"])
      assert.deepStrictEqual(
        [refused.code, refused.stderr],
        [2, "effect: --set only works with the run of a training\n"],
      )
      const again = told(await effect(["eval", run]))
      assert.strictEqual(again.stdout, stdout.slice(0, stdout.indexOf(`\n${run}`)))
      // It is finished, so resuming it prints its result again and plays nothing.
      const resumed = told(await effect(["eval", file, "--results-dir", results, "--resume", "latest"]))
      assert.strictEqual(resumed.stdout, stdout)
      // Its own config is the same evaluation.
      const repeated = resultOf(
        told(await effect(["eval", join(run, "config.yaml"), "--results-dir", results, "--quiet", "--json"])),
      )
      assert.strictEqual(repeated.digest, resultOf(told(await effect(["eval", run, "--json"]))).digest)

      const compared = told(await effect(["eval", run, repeated.runDir, "--json"]))
      const { comparisons } = JSON.parse(compared.stdout)
      assert.deepStrictEqual(
        comparisons.map((one: Record<string, unknown>) => [one["left"], one["right"], one["scorer"], one["p"]]),
        [
          ["says_rome (before)", "says_rome", "exact", 1],
          ["says_rome (before)", "says_rome", "steps", 1],
          ["reads (before)", "reads", "exact", 1],
          ["reads (before)", "reads", "steps", 1],
        ],
      )
      const text = told(await effect(["eval", run, repeated.runDir])).stdout
      assert.include(text, `before  ${run}\n`)
      assert.include(cells(text), "reads − reads (before) | exact | 0.000 | -0.390 to 0.390 | 0 | 0 | 6 | 1 | McNemar")
      const to = ["--set", `compare_to=${run}`, "--set", "repeats=1", "--results-dir", results, "--json", "--quiet"]
      const { report } = resultOf(told(await effect(["eval", file, ...to])))
      assert.include(JSON.stringify(report), '"left":"reads (before)","right":"reads"')
    }))

  it("says what is wrong in a line", () =>
    withFolder(async (folder) => {
      const file = write(folder, "tasks.yaml", evaluation())
      const training = write(folder, "train.yaml", stringify({ agent: {}, train_dataset: { type: "codebook" } }))
      const table: ReadonlyArray<readonly [ReadonlyArray<string>, number, string]> = [
        [[file, "--set", "repeat=3"], 2, '--set: unknown key "repeat"; did you mean "repeats"?'],
        [[training], 2, "this is a training, not an evaluation (it has no dataset); train it with effect run "],
        [[join(folder, "none.yaml")], 2, "there is no such file"],
        [[folder, folder], 1, "expected the folder of a finished evaluation; it has no episodes.jsonl"],
        [[file, "--episodes", "3"], 2, "--episodes only works with a run: effect eval RUN"],
        [[folder, folder, "--set", "repeats=3"], 2, "--set only works with one run or one file"],
        [[folder, "--resume", "latest"], 2, "it is not a run (it has no config.yaml), and there are no runs in"],
      ]
      for (const [args, code, message] of table) {
        const outcome = await effect(["eval", ...args, "--results-dir", join(folder, "results")])
        assert.strictEqual(outcome.code, code, `${args.join(" ")}: ${outcome.stderr}`)
        assert.include(outcome.stderr, message)
        assert.strictEqual(outcome.stderr.trim().split("\n").length, 1, outcome.stderr)
      }
      assert.isFalse(existsSync(join(folder, "results")), "nothing was begun")
    }))
})

describe("effect eval of a run of an agent that talks", () => {
  it("plays its validation tasks with what a checkpoint remembers", () =>
    withFolder(async (folder) => {
      const tasks = { type: "codebook", words: 4, wordings: 1 }
      const text = stringify({
        train_dataset: { ...tasks, num_tasks: 20, seed: 1 },
        validation_dataset: { ...tasks, num_tasks: 8, seed: 2 },
        agent: { type: "history_agent", lm_config: { model: "scripted:reader" } },
        runtime: { validation_freq: 20, checkpoint_every_episodes: 1 },
      })
      const file = write(folder, "train.yaml", text)
      const trained = resultOf(
        told(await effect(["run", file, "--results-dir", join(folder, "r"), "--json", "--quiet"])),
      )
      const run = trained.runDir
      const all = resultOf(told(await effect(["eval", run, "--json"])))
      assert.deepInclude(all, { runDir: run, episodes: 8, meanReturn: Object(trained["validation"]).meanReturn })
      assert.strictEqual(all["meanReturn"], 1)
      const early = resultOf(told(await effect(["eval", run, "--step", "1", "--json", "--episodes", "5"])))
      assert.strictEqual(early["episodes"], 5)
      assert.isBelow(Number(early["meanReturn"]), 1)
      const none = await effect(["eval", run, "--step", "77"])
      assert.strictEqual(none.code, 2)
      assert.include(none.stderr, "has no checkpoint of this step; expected one of 1, 2, 3")
      const drawn = await effect(["eval", run, "--render"])
      assert.strictEqual(drawn.code, 2)
      assert.include(drawn.stderr, "--render only works with reinforcement learning")
    }))
})
