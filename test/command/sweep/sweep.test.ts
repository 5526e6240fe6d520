import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { fromPath } from "../../../src/run/identifier.ts"
import { inCamelCase } from "../cli/crash.ts"
import { effect, program, resultOf, withFolder, write } from "../cli/effect.ts"
import { digestsOf, finished, left, logOf } from "./sweeps.ts"

const tiny = program("totalSteps: 512, checkpoint: { everySteps: 128 }")

describe("effect run --population", () => {
  it(
    "runs every value with every other and every seed, and says what each configuration reached",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        const file = write(folder, "train.ts", tiny)
        const results = join(folder, "results")
        const words = ["--population", "algorithm=a2c,ppo", "algorithm.learning_rate=1e-3,1e-4", "--seeds", "1..2"]
        const outcome = await effect(["run", file, ...words, "--jobs", "2", "--results-dir", results, "--json"])
        assert.strictEqual(outcome.code, 0, outcome.stderr)
        const runs = [...left(results).values()]
        const expected = ["a2c", "ppo"].flatMap((algorithm) =>
          ["0.001", "0.0001"].flatMap((learning_rate) =>
            [1, 2].map((seed) => ({ population: { environment: "CartPole-v1", algorithm, learning_rate }, seed })),
          ),
        )
        assert.sameDeepMembers(
          runs.map((run) => ({ population: fromPath(run)?.population, seed: fromPath(run)?.seed })),
          expected,
        )
        for (const run of runs) {
          const { algorithm, seed } = parse(readFileSync(join(run, "config.yaml"), "utf8"))
          const { population, seed: inPath } = fromPath(run) ?? {}
          assert.deepEqual(
            [algorithm.name, String(algorithm.learning_rate), seed],
            [population?.algorithm, population?.learning_rate, inPath],
          )
        }

        const { configurations } = JSON.parse(outcome.stdout)
        assert.deepEqual(
          configurations.map(({ population }: { readonly population: unknown }) => population).slice(0, 2),
          [
            { algorithm: "a2c", "algorithm.learning_rate": 0.001 },
            { algorithm: "a2c", "algorithm.learning_rate": 0.0001 },
          ],
        )
        const folders = [...new Set(runs.map((run) => dirname(run)))]
        const beside = folders.map((one) => JSON.parse(readFileSync(join(one, "metrics.json"), "utf8")))
        const populations = folders.map((one) => {
          const { algorithm, learning_rate } = fromPath(`${one}/0001`)?.population ?? {}
          return { algorithm, "algorithm.learning_rate": Number(learning_rate) }
        })
        assert.sameDeepMembers(
          configurations,
          beside.map((metrics, index) => ({ population: populations[index], ...inCamelCase(metrics) })),
        )
        for (const { score } of beside) assert.strictEqual(score.runs, 2)

        // One among others is the run that it is alone, whose path has nothing of a sweep.
        const settings = ["--set", "algorithm=a2c", "--set", "algorithm.learning_rate=1e-4", "--seed", "2"]
        const alone = resultOf(
          await effect(["run", file, ...settings, "--results-dir", join(folder, "alone"), "--json", "--quiet"]),
        )
        assert.strictEqual(alone.digest, configurations[1].seeds[1].digest)
        assert.deepEqual(fromPath(alone.runDir)?.population, { environment: "CartPole-v1", algorithm: "a2c" })
      }),
  )

  it("ends with a table of the configurations, and with what failed: that stops no other", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", tiny)
      const results = join(folder, "results")
      const outcome = await effect(["run", file, "--population", "algorithm=sac,ppo", "--results-dir", results])
      assert.strictEqual(outcome.code, 1)
      const [heading, sac, ppo] = outcome.stdout.split("\n")
      assert.match(heading, /^algorithm +IQM +95 % +mean +seeds$/)
      assert.match(sac, /^sac +– +– +– +0, 1 failed$/)
      assert.match(ppo, /^ppo +\d+\.\d +\d+\.\d to \d+\.\d +\d+\.\d ± 0\.0 +1$/)
      const [run] = finished(results)
      assert.strictEqual(fromPath(run)?.population.algorithm, "ppo")
      const failures =
        /^algorithm=sac seed 1: failed: --set: algorithm: sac needs actions that are real numbers.*_sac\/0001$/gm
      assert.lengthOf(outcome.stderr.match(failures) ?? [], 1)
      assert.match(outcome.stderr, /effect: 1 of 2 runs failed\n$/)
      assert.match(
        outcome.stderr,
        /^algorithm=ppo seed 1: \d+\.\d after 512 steps in .* s {2}.*CartPole-v1_ppo\/0001$/m,
      )
    }))

  it("prints with --dry-run what would run, and runs nothing", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", tiny)
      const results = join(folder, "results")
      const words = ["--population", "num_envs=4,8", "--population", 'env=CartPole-v1,"Acrobot-v1"', "--seeds", "1,7"]
      const args = ["run", file, ...words, "--results-dir", results, "--dry-run"]
      const outcome = await effect(args)
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      const lines = outcome.stdout.trim().split("\n")
      assert.strictEqual(lines.pop(), "8 runs")
      assert.strictEqual(lines.length, 8)
      assert.match(
        lines[0],
        /\{TIME\}\/[\w-]+_train_environment_algorithm_num-envs\/CartPole-v1_ppo_4\/0001 +num_envs=4 env=CartPole-v1 seed=1$/,
      )
      assert.match(lines[7], /Acrobot-v1_ppo_8\/0007 +num_envs=8 env="Acrobot-v1" seed=7$/)
      const { runs } = JSON.parse((await effect([...args, "--json"])).stdout)
      assert.lengthOf(runs, 8)
      assert.deepInclude(runs[7], { seed: 7, overrides: ["num_envs=8", 'env="Acrobot-v1"'], does: "starts" })
      assert.isFalse(existsSync(results))

      const single = await effect(["run", file, "--results-dir", results, "--dry-run"])
      assert.match(single.stdout, /_train_environment_algorithm\/CartPole-v1_ppo\/0001 +seed=1\n1 run\n$/)
      assert.isFalse(existsSync(results))
    }))
})

describe("a sweep is the same sweep", () => {
  it(
    "when it is resumed with a finished run, an unfinished one, one without a config and one that hasn't started",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        const file = write(folder, "train.ts", tiny)
        const results = join(folder, "results")
        const args = ["run", file, "--seeds", "1..4", "--results-dir", results]
        assert.strictEqual((await effect(args)).code, 0)
        const before = digestsOf(results)
        const [done, begun, empty, none] = [...left(results).values()].toSorted()
        const written = statSync(join(done, "return.json")).mtimeMs
        rmSync(join(begun, "return.json"))
        for (const run of [empty, none]) rmSync(run, { recursive: true })
        mkdirSync(empty)

        const time = dirname(dirname(dirname(done)))
        const planned = await effect([...args, "--resume", time, "--dry-run"])
        const does = planned.stdout.split("\n").map((line) => /^(is finished|resumes|starts) /.exec(line)?.[1])
        assert.deepEqual(does.slice(0, 4), ["is finished", "resumes", "starts", "starts"])

        // Elsewhere than results/, which the folder says.
        const outcome = await effect(["run", file, "--seeds", "1..4", "--resume", time])
        assert.strictEqual(outcome.code, 0, outcome.stderr)
        assert.deepEqual(digestsOf(results), before)
        assert.strictEqual(statSync(join(done, "return.json")).mtimeMs, written)
        assert.match(outcome.stderr, /^seed 1: .*0001 \(earlier\)$/m)
        assert.match(logOf(begun), /Z resumed at step 512: ppo on CartPole-v1, 4 envs, 512 steps, seed 2$/m)
      }),
  )

  it("when it is resumed with more steps: finished runs are trained further, too", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const [extended, whole] = [join(folder, "extended"), join(folder, "whole")]
      const words = ["--seeds", "1..2", "--set", "algorithm.schedule=constant"]
      const args = ["run", write(folder, "train.ts", tiny), ...words]
      assert.strictEqual((await effect([...args, "--results-dir", extended])).code, 0)
      // In the file, which a run that goes on doesn't heed by itself.
      write(folder, "train.ts", tiny.replace("totalSteps: 512", "totalSteps: 1024"))
      const outcome = await effect([...args, "--results-dir", extended, "--resume", "latest"])
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      assert.match(outcome.stderr, /^seed 2: .* after 1024 steps/m)
      assert.strictEqual((await effect([...args, "--results-dir", whole])).code, 0)
      assert.deepEqual(digestsOf(extended), digestsOf(whole))
    }),
  )

  it("refuses other settings than those of its runs, before anything starts", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      const args = ["run", write(folder, "train.ts", tiny), "--seeds", "1..2", "--results-dir", results]
      assert.strictEqual((await effect(args)).code, 0)
      const [first, second] = [...left(results).values()].toSorted()
      rmSync(second, { recursive: true })
      const resumed = (...more: ReadonlyArray<string>) => effect([...args, "--resume", "latest", ...more])
      for (const [more, key, then, now] of [
        [["--set", "algorithm.learning_rate=0.5"], "algorithm.learning_rate", "0.00025", "0.5"],
        [["--total-steps", "256"], "total_steps", "512", "256"],
        [["--set", "validation.every_steps=256"], "validation.every_steps", "0", "256"],
      ] as const) {
        const outcome = await resumed(...more)
        assert.strictEqual(outcome.code, 2, outcome.stderr)
        const found = `effect: --resume: seed 1 was finished with ${key} = ${then}, and these settings have ${now}: ${first}; `
        assert.isTrue(outcome.stderr.startsWith(found), outcome.stderr)
        assert.strictEqual(outcome.stderr.trim().split("\n").length, 1)
      }
      // A setting that changes no result may differ; the settings of unfinished runs are compared as well.
      assert.strictEqual((await resumed("--set", "checkpoint.every_steps=64", "--dry-run")).code, 0)
      rmSync(join(first, "return.json"))
      assert.include((await resumed("--set", "algorithm.gamma=0.5")).stderr, "seed 1 was started with algorithm.gamma")
      assert.isFalse(existsSync(second))
    }),
  )

  it(
    "not as one of its runs: a plain --resume latest says what the newest unfinished run is part of",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        const results = join(folder, "results")
        const file = write(folder, "train.ts", tiny)
        const args = ["run", file, "--results-dir", results]
        assert.strictEqual((await effect([...args, "--seeds", "1..2"])).code, 0)
        const [first] = [...left(results).values()].toSorted()
        rmSync(join(first, "return.json"))
        const outcome = await effect([...args, "--resume", "latest"])
        assert.strictEqual(outcome.code, 2, outcome.stderr)
        const command = `npx effect run ${file} --seeds 1..2 --resume ${dirname(dirname(dirname(first)))}`
        const message = `the newest unfinished run, ${first}, is part of a sweep; resume the sweep with: ${command}; or this run alone with --resume ${first}`
        assert.strictEqual(outcome.stderr, `effect: --resume latest: ${message}\n`)
        assert.isFalse(existsSync(join(first, "return.json")))
        assert.strictEqual((await effect(command.split(" ").slice(2))).code, 0)
        assert.isTrue(existsSync(join(first, "return.json")))
      }),
  )
})

describe.concurrent("what can't be swept is one line, before anything starts", () => {
  for (const [args, message] of [
    [["algorithm=ppo,pp"], '--population: algorithm: unknown algorithm "pp"; did you mean "ppo"?'],
    [["num_env=4,8"], '--population: unknown key "num_env"; did you mean "num_envs"?'],
    [["num_envs=4,many"], "--population: num_envs: "],
    [["env=CartPole-v1,Nowhere-v0"], 'unknown env "Nowhere-v0"'],
    [["algorithm=ppo,a2c", "algorithm.clip_value=true"], 'unknown key "algorithm.clip_value"'],
    [["algorithm"], "--population algorithm: expected key=value,value,…"],
    [
      ["num_envs=4,,8"],
      '--population num_envs=4,,8: expected a value on both sides of every comma; write "" for an empty text',
    ],
    [["num_envs=4,4.0"], "--population num_envs=4,4.0: 4.0 is listed twice"],
    [["num_envs=4", "numEnvs=8"], "--population num_envs: this setting is listed twice"],
    [["env=[a"], "--population env=[a: a quote or a bracket is not closed"],
    [[`env=CartPole-v1,{name: ${"x".repeat(300)}}`], "unknown env"],
    [
      [`log_dir=a,${"b".repeat(300)}`],
      "--population: a folder's name would be longer than 255 bytes: CartPole-v1_ppo_bbb",
    ],
    [["seed=1,2"], "--population seed=1,2: use --seeds for seeds"],
    [
      ["num_envs=4,8", "--set", "num_envs=2"],
      "--population num_envs: another flag sets this key as well; use only one of them",
    ],
    [
      ["num_envs=4,8", "--seeds", "1..2", "--set", "seed=3"],
      "--seeds and another setting of the seed (3) exclude each other",
    ],
    [["num_envs=4,8", "--resume", "latest"], "--resume latest: there is no sweep of train with any of these runs"],
    [
      ["num_envs=4,8", "--resume", "nowhere"],
      "--resume nowhere: expected the folder of a sweep, which is named by its time, or a part of its path",
    ],
  ] as const) {
    it(args.join(" ").slice(0, 80), () =>
      withFolder(async (folder) => {
        const results = join(folder, "results")
        const file = write(folder, "train.ts", tiny)
        const outcome = await effect(["run", file, "--results-dir", results, "--population", ...args])
        assert.strictEqual(outcome.code, 2, outcome.stderr)
        assert.strictEqual(outcome.stderr.trim().split("\n").length, 1, outcome.stderr)
        assert.include(outcome.stderr, message)
        assert.strictEqual(outcome.stdout, "")
        assert.isFalse(existsSync(results) && readdirSync(results).length > 0)
      }),
    )
  }

  it("words that belong to nothing", async () => {
    const outcome = await effect(["run", "examples/cartpole.ts", "num_envs=4"])
    assert.strictEqual(outcome.code, 2)
    assert.strictEqual(
      outcome.stderr,
      'effect: unexpected argument "num_envs=4"; settings to sweep follow --population\n',
    )
  })
})
