import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { begin, effect, program, until, withFolder, write } from "../effect.ts"
import { runsIn } from "../crash.ts"

const space = `
trials: 6
parallel: 2
sampler: { startup: 3 }
parameters:
  algorithm.learning_rate: { log_uniform: [1e-4, 1e-2] }
  algorithm.epochs: { int: [1, 3] }
`

interface Result {
  readonly studyDir: string
  readonly trials: number
  readonly pruned: number
  readonly failed: number
  readonly best: { readonly trial: number; readonly value: number; readonly params: Readonly<Record<string, unknown>> }
}
const resultOf = (stdout: string): Result => JSON.parse(stdout)
const trialsIn = (study: string): string => readFileSync(join(study, "trials.jsonl"), "utf8")
const training = (totalSteps: number): string =>
  program(`validation: { everySteps: 512, episodes: 2 }, seed: 3`).replace("2048", String(totalSteps))

const files = (folder: string, spaceText = space, totalSteps = 1024) => ({
  file: write(folder, "train.ts", training(totalSteps)),
  space: write(folder, "space.yaml", spaceText),
})

describe("effect tune", () => {
  it("leaves ordinary runs, records that jq can read, and the settings of the best trial", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const { file, space } = files(folder)
      const outcome = await effect(["tune", file, "--space", space, "--json"], folder)
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      const { studyDir, trials, best } = resultOf(outcome.stdout)
      assert.strictEqual(trials, 6)
      assert.strictEqual(runsIn(join(folder, "results")).length, 6)
      const lines = trialsIn(join(folder, studyDir)).trim().split("\n")
      const records: ReadonlyArray<{
        trial: number
        value: number
        runs: ReadonlyArray<{ path: string; digest: string }>
      }> = lines.map((line) => JSON.parse(line))
      assert.deepStrictEqual(records.map(({ trial }) => trial), [0, 1, 2, 3, 4, 5]) // prettier-ignore
      assert.strictEqual(best.value, Math.max(...records.map(({ value }) => value)))
      for (const { runs } of records) {
        const metrics = JSON.parse(readFileSync(join(folder, studyDir, runs[0].path, "metrics.json"), "utf8"))
        assert.strictEqual(metrics.digest, runs[0].digest)
      }
      const listed = await effect(["runs", "--where", "trial=0004", "--json"], folder)
      assert.include(JSON.parse(listed.stdout).path, records[4].runs[0].path)
      // The best settings as a config give the best run again.
      const again = await effect(["run", file, "--config", join(studyDir, "best.yaml"), "--json", "--quiet"], folder)
      assert.strictEqual(JSON.parse(again.stdout).digest, records[best.trial].runs[0].digest)
      // The list of files for a static page holds only runs.
      assert.notInclude(readFileSync(join(folder, "results/index.txt"), "utf8"), "trials.jsonl")
    }),
  )

  it("gives the same trials with any number of workers, and after an interruption", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const { file, space } = files(folder)
      const command = (...more: ReadonlyArray<string>) => ["tune", file, "--space", space, "--quiet", "--json", ...more]
      const whole = await effect(command("--workers", "1", "--results-dir", "one"), folder)
      assert.strictEqual(whole.code, 0, whole.stderr)
      const expected = trialsIn(join(folder, resultOf(whole.stdout).studyDir))

      const several = await effect(command("--workers", "2", "--results-dir", "two"), folder)
      assert.strictEqual(trialsIn(join(folder, resultOf(several.stdout).studyDir)), expected)

      const started = begin(command("--workers", "2", "--results-dir", "three"), folder)
      await until(() => existsSync(join(folder, "three")) && runsIn(join(folder, "three")).length >= 3)
      started.interrupt()
      const interrupted = await started.ended
      assert.strictEqual(interrupted.code, 130)
      const [, resume = ""] = /interrupted; resume with: npx effect (.*)\n/.exec(interrupted.stderr) ?? []
      const resumed = await effect([...resume.split(" "), "--json", "--quiet"], folder)
      assert.strictEqual(resumed.code, 0, resumed.stderr)
      const { studyDir } = resultOf(resumed.stdout)
      assert.strictEqual(trialsIn(join(folder, studyDir)), expected)
      const best = readFileSync(join(folder, studyDir, "best.yaml"), "utf8")
      assert.strictEqual(best, readFileSync(join(folder, resultOf(whole.stdout).studyDir, "best.yaml"), "utf8"))

      // Without the last records, as if it had been killed, the finished runs are read again.
      const [kept] = expected.split("\n")
      writeFileSync(join(folder, studyDir, "trials.jsonl"), `${kept}\n{"trial":1,"st`)
      const again = await effect(["tune", file, "--resume", "latest", "--results-dir", "three"], folder)
      assert.strictEqual(trialsIn(join(folder, studyDir)), expected, again.stderr)
      assert.match(again.stdout, /best: trial \d with validation [\d.]+, of 6 trials \(0 pruned, 0 failed\)/)

      // If a record was edited, a finished run may have other settings than those that are suggested now.
      writeFileSync(join(folder, studyDir, "trials.jsonl"), expected.split("\n").slice(0, 3).join("\n").replaceAll(/"value":[\d.]+,"reason"/g, (_, at) => `"value":${at},"reason"`)) // prettier-ignore
      const edited = await effect(["tune", file, "--resume", "latest", "--results-dir", "three"], folder)
      assert.strictEqual(edited.code, 2, edited.stdout)
      assert.match(edited.stderr, /--resume: trial \d was finished with algorithm\.\w+ = .*, and these settings have/)
    }),
  )

  it("adds trials to a study, and refuses another space or another training", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const { file, space } = files(folder)
      const first = await effect(["tune", file, "--space", space, "--trials", "2", "--quiet", "--json"], folder)
      const { studyDir } = resultOf(first.stdout)
      const before = trialsIn(join(folder, studyDir))
      const more = await effect(["tune", file, "--resume", "latest", "--trials", "3", "--quiet"], folder)
      assert.strictEqual(more.code, 0, more.stderr)
      const after = trialsIn(join(folder, studyDir))
      assert.isTrue(after.startsWith(before))
      assert.strictEqual(after.trim().split("\n").length, 3)

      const refused = async (...args: ReadonlyArray<string>): Promise<string> => {
        const { code, stderr } = await effect(["tune", file, ...args], folder)
        assert.strictEqual(code, 2)
        return stderr
      }
      const wider = write(folder, "wider.yaml", readFileSync(space, "utf8").replace("1e-2", "1e-1"))
      const other = /the study was started with parameters\.algorithm\.learning_rate\.log_uniform = .*; use the same/
      assert.match(await refused("--resume", "latest", "--space", wider), other)
      const set = await refused("--resume", studyDir, "--set", "num_envs=2")
      assert.match(set, /the study was started with num_envs = 4, and this training has 2/)
      assert.match(await refused("--resume", "latest", "--trials", "2"), /the study has 3 trials already/)
      assert.match(await refused(), /expected --space FILE .* or --resume STUDY/)
    }),
  )

  it(
    "is resumed inside its folder, and prints the whole command that trains the best settings again",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        const { file, space } = files(folder)
        const set = ["--set", "algorithm.gamma=0.9"]
        const first = await effect(["tune", file, "--space", space, "--trials", "1", ...set, "--json"], folder)
        const { studyDir } = resultOf(first.stdout)
        const args = ["tune", file, "--resume", ".", "--trials", "2", ...set]
        const { code, stdout, stderr } = await effect(args, join(folder, studyDir))
        assert.strictEqual(code, 0, stderr)
        assert.strictEqual(runsIn(join(folder, "results")).length, 2)
        assert.deepStrictEqual(readdirSync(join(folder, studyDir)).filter((name) => /^\d{4}-/.test(name)), []) // prettier-ignore
        const [, again = ""] = /^npx effect (run .*)$/m.exec(stdout) ?? []
        const repeated = await effect([...again.split(" "), "--json", "--quiet"], folder)
        const records = trialsIn(join(folder, studyDir)).trim().split("\n").map((line) => JSON.parse(line)) // prettier-ignore
        const digests: ReadonlyArray<string> = records.map(({ runs }) => runs[0].digest)
        assert.include(digests, JSON.parse(repeated.stdout).digest)
      }),
  )

  it("refuses a space that doesn't fit the training, before anything runs", () =>
    withFolder(async (folder) => {
      const { file } = files(folder)
      const refusal = async (parameters: string, ...args: ReadonlyArray<string>): Promise<string> => {
        const space = write(folder, "wrong.yaml", `parameters:\n  num_envs: { int: [1, 4] }\n  ${parameters}\n`)
        const { code, stderr } = await effect(["tune", file, "--space", space, ...args], folder)
        assert.strictEqual(code, 2, stderr)
        return stderr
      }
      const misspelt = await refusal("algorithm.learning_rte: { uniform: [0.1, 0.2] }")
      assert.match(
        misspelt,
        /wrong\.yaml:3: unknown key "algorithm\.learning_rte"; did you mean "algorithm\.learning_rate"\?/,
      )
      const negative = await refusal("algorithm.learning_rate: { uniform: [-1, 0.2] }")
      assert.match(negative, /wrong\.yaml:3: algorithm\.learning_rate: expected a value greater than 0, found -1/)
      const type = await refusal("algorithm.epochs: { uniform: [0.5, 4] }")
      assert.match(type, /wrong\.yaml:3: algorithm\.epochs: .* found 0\.5/)
      const taken = await refusal("algorithm.clip: { uniform: [0.1, 0.4] }", "--set", "algorithm.clip=0.2")
      assert.match(taken, /wrong\.yaml:3: parameters\.algorithm\.clip: another flag sets this key as well/)
      assert.match(await refusal("seed: { int: [1, 9] }"), /parameters\.seed: the seed can't be tuned/)
      const limits = await refusal("stop_below: { choice: [[], [{ step: 1, return: 9 }]] }\npruner: { name: asha }")
      assert.match(limits, /wrong\.yaml:4: pruner: it sets stop_below, which this training sets as well/)
      assert.isFalse(existsSync(join(folder, "results")))
    }))

  it("stops trials that fall behind, at a validation and with the reason", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const pruning = `
trials: 8
parallel: 1
sampler: { name: random }
pruner: { name: asha, min_steps: 512, reduction: 2, warmup: 2 }
parameters:
  algorithm.learning_rate: { log_uniform: [1e-7, 1e-2] }
`
      const { file, space } = files(folder, pruning, 2048)
      const outcome = await effect(["tune", file, "--space", space, "--json"], folder)
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      const { studyDir, pruned } = resultOf(outcome.stdout)
      assert.isAbove(pruned, 0)
      const records = trialsIn(join(folder, studyDir)).trim().split("\n").map((line) => JSON.parse(line)) // prettier-ignore
      const one = records.find(({ state }) => state === "pruned")
      assert.match(one.reason, /^seed 3: [\d.]+ at step \d+ is below [\d.]+, the limit at step \d+$/)
      const run = join(folder, studyDir, one.runs[0].path)
      assert.isTrue(existsSync(join(run, "return.json")))
      assert.strictEqual(JSON.parse(readFileSync(join(run, "metrics.json"), "utf8")).steps, one.curve.at(-1).step)
      assert.match(
        readFileSync(join(run, "run.log"), "utf8"),
        /the training ends at step \d+: the validation's mean return/,
      )
      const replayed = await effect(["replay", run, "--file", file], folder)
      assert.strictEqual(replayed.code, 0, replayed.stderr)
    }),
  )

  it("goes on when a trial fails, and gives up if the first ones all do", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const failing = `
trials: 6
parallel: 1
sampler: { name: random }
parameters:
  algorithm.nsteps: { choice: [32, 33] }
  algorithm.minibatches: { choice: [4, 7] }
`
      const { file, space } = files(folder, failing)
      const outcome = await effect(["tune", file, "--space", space, "--json"], folder)
      const { failed, trials } = resultOf(outcome.stdout)
      assert.strictEqual(trials, 6, outcome.stderr)
      assert.isAbove(failed, 0)
      assert.isBelow(failed, 6)
      assert.match(outcome.stderr, /trial \d: failed {2}algorithm\.nsteps=\d+ algorithm\.minibatches=\d {2}\(.+\)/)

      const broken = write(
        folder,
        "broken.yaml",
        "trials: 9\nmetric: no_such\nparameters:\n  num_envs: { int: [1, 4] }\n",
      )
      const noMetric = await effect(["tune", file, "--space", broken], folder)
      assert.strictEqual(noMetric.code, 2)
      assert.match(
        noMetric.stderr,
        /broken\.yaml:2: metric: unknown metric "no_such"; expected one of validation, best_validation, .*, mean_score/,
      )
      write(folder, "broken.yaml", "metric: validaton\nparameters:\n  num_envs: { int: [1, 4] }\n")
      const misspelt = await effect(["tune", file, "--space", broken], folder)
      assert.match(misspelt.stderr, /metric: unknown metric "validaton"; did you mean "validation"\?/)
    }),
  )

  it("trains several seeds for each trial, and takes their mean", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const { file, space } = files(folder, `seeds: 2\ntrials: 1\nparameters:\n  num_envs: { choice: [4, 8] }\n`)
      const { stdout, stderr } = await effect(["tune", file, "--space", space, "--json", "--quiet"], folder)
      const record = JSON.parse(trialsIn(join(folder, resultOf(stdout).studyDir)))
      assert.deepStrictEqual(record.runs.map(({ seed }: { seed: number }) => seed), [3, 4], stderr) // prettier-ignore
      assert.strictEqual(record.value, (record.runs[0].value + record.runs[1].value) / 2)
    }),
  )

  it("takes any metric of the logs, too, and names the nearest one if there is no such", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const { file } = files(folder)
      const study = (metric: string) => {
        const text = `metric: ${metric}\ndirection: minimize\ntrials: 2\nparameters:\n  num_envs: { choice: [4, 8] }\n`
        return effect(["tune", file, "--space", write(folder, "space.yaml", text), "--json", "--quiet"], folder)
      }
      const { stdout, code } = await study("losses/entropy")
      assert.strictEqual(code, 0)
      const { studyDir, best } = resultOf(stdout)
      const values = trialsIn(join(folder, studyDir)).trim().split("\n").map((line) => JSON.parse(line).value) // prettier-ignore
      assert.strictEqual(best.value, Math.min(...values))
      assert.isTrue(best.value > 0 && best.value < 0.6932)
      assert.match(
        (await study("losses/entropie")).stderr,
        /logs\.tfevents has no losses\/entropie; did you mean "losses\/entropy"\?/,
      )
    }),
  )

  it("shows the first trials without starting them", () =>
    withFolder(async (folder) => {
      const { file, space } = files(folder)
      const { stdout, code } = await effect(["tune", file, "--space", space, "--dry-run"], folder)
      assert.strictEqual(code, 0)
      assert.match(
        stdout,
        /^trial 0: {2}algorithm\.learning_rate=0\.\d+ algorithm\.epochs=\d\ntrial 1: .*\n6 trials, each with 1 run\n$/,
      )
      assert.isFalse(existsSync(join(folder, "results")))
    }))

  it("takes the example's file, and fits its training", async () => {
    const file = "examples/rollouts/ppo-acrobot"
    const args = ["tune", `${file}.ts`, "--space", `${file}.space.yaml`, "--set", "validation.every_steps=20_000"]
    const { code, stdout, stderr } = await effect([...args, "--dry-run"])
    assert.strictEqual(code, 0, stderr)
    assert.match(stdout, /40 trials, each with 1 run\n$/)
  })

  it("tunes agents that ask a language model", () =>
    withFolder(async (folder) => {
      const space = write(folder, "space.yaml", "trials: 2\nparameters:\n  agent.max_reflections_in_prompt: { int: [1, 9] }\n") // prettier-ignore
      const args = ["tune", "examples/codebook.yaml", "--space", space, "--set", "runtime.max_envs_to_visit=2"]
      const { code, stdout, stderr } = await effect([...args, "--results-dir", join(folder, "results"), "--json"])
      assert.strictEqual(code, 0, stderr)
      assert.strictEqual(resultOf(stdout).failed, 0)
    }))
})
