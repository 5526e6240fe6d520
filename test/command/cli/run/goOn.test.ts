import { readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { effect, program, resultOf, withFolder, write } from "../effect.ts"

const textOf = (...path: ReadonlyArray<string>): string => readFileSync(join(...path), "utf8")

describe("effect run --resume", () => {
  it("takes another learning rate, and notes it", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("totalSteps: 1024"))
      const first = resultOf(await effect(["run", file, "--quiet", "--json"], folder))
      const words = ["--total-steps", "2048", "--set", "algorithm.learning_rate=1e-5", "--quiet", "--json"]
      const outcome = await effect(["run", file, "--resume", "latest", ...words], folder)
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      const run = join(folder, first.runDir)
      const change = "algorithm.learning_rate is 0.00001 from here on, and was 0.00025 when the checkpoint was saved"
      assert.include(textOf(run, "run.log"), change)
      // The next resume goes on with it, without the flag.
      const third = await effect(["run", file, "--resume", "latest", "--total-steps", "3072", "--quiet"], folder)
      assert.strictEqual(third.code, 0, third.stderr)
      assert.strictEqual(parse(textOf(run, "config.yaml")).algorithm.learning_rate, 1e-5)
    }),
  )

  it("names start.from for another network, and a run begins from there", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("totalSteps: 1024"))
      const first = resultOf(await effect(["run", file, "--quiet", "--json"], folder))
      const refused = await effect(["run", file, "--resume", first.runDir, "--set", "seed=5"], folder)
      assert.strictEqual(refused.code, 1)
      const [, start = ""] = /begin a new run from its weights: (start\.from=\S+)\n$/.exec(refused.stderr) ?? []
      const second = await effect(["run", file, "--set", start, "--seed", "5", "--quiet", "--json"], folder)
      assert.strictEqual(second.code, 0, second.stderr)
      assert.strictEqual(
        `start.from=${parse(textOf(folder, resultOf(second).runDir, "config.yaml")).start.from}`,
        start,
      )
    }),
  )
})

describe("--set start.from", () => {
  it(
    "takes `latest` and a part of a path, and the run shows where it came from after that run is gone",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        const file = write(folder, "train.ts", program("totalSteps: 1024"))
        const args = ["run", file, "--quiet", "--json"]
        const first = resultOf(await effect(args, folder))
        const more = ["--set", "start.from=latest", "--set", "num_envs=4", "--seed", "7"]
        const second = resultOf(await effect([...args, ...more], folder))
        const { start } = parse(textOf(folder, second.runDir, "config.yaml"))
        assert.include(start.from, `${first.runDir}/checkpoints/step_`)
        assert.include(textOf(folder, second.runDir, "description.txt"), `from the weights of ${start.from}`)
        const replay = await effect(["replay", second.runDir, "--quiet"], folder)
        assert.strictEqual(replay.code, 0, replay.stderr)
        const third = resultOf(await effect([...args, "--set", "start.from=ppo/0007", "--seed", "8"], folder))
        const origin = parse(textOf(folder, third.runDir, "config.yaml")).start.from
        assert.include(origin, `${second.runDir}/checkpoints/step_`)

        rmSync(join(folder, second.runDir), { recursive: true })
        const shown = await effect(["runs", "show", third.runDir], folder)
        assert.include(shown.stdout, `  start:\n    from: ${origin}\n`)
        const resumed = await effect([...args, "--resume", third.runDir, "--total-steps", "2048"], folder)
        assert.strictEqual(resumed.code, 0, resumed.stderr)
        const lost = await effect([...args, "--set", "start.from=nowhere"], folder)
        assert.strictEqual(lost.code, 2)
        assert.include(lost.stderr, "--set: start.from: nowhere: no run in results has this in its path")
      }),
  )
})

describe("mistakes", () => {
  it("in --ranks are blamed on --ranks", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("totalSteps: 1024"))
      const { stderr } = await effect(["run", file, "--ranks", "0"], folder)
      assert.match(stderr, /^effect: Invalid value for flag --ranks: "0"\. Expected: /)
    }))

  it("in the name of a subcommand of `effect runs` name it", () =>
    withFolder(async (folder) => {
      const { code, stderr } = await effect(["show", "latest"], folder)
      assert.strictEqual(code, 2)
      assert.include(stderr, 'effect: unknown subcommand "show"; did you mean `effect runs show`?\n')
      const stderrOf = async (...words: ReadonlyArray<string>) => (await effect(words, folder)).stderr
      assert.include(
        await stderrOf("rnu"),
        'effect: unknown subcommand "rnu"; did you mean `effect run` or `effect runs`?\n',
      )
      assert.include(await stderrOf("banana"), 'effect: unknown subcommand "banana"; see `effect --help`\n')
    }))

  it("in the name of a file to evaluate say that it is missing", () =>
    withFolder(async (folder) => {
      for (const name of ["tasks.yaml", "tasks.json", "sub/tasks.yml"]) {
        const { code, stderr } = await effect(["eval", name], folder)
        assert.strictEqual(code, 2, stderr)
        assert.match(stderr, /^effect: \S*tasks\.\w+: .*no such file/)
        assert.notInclude(stderr, "no runs in")
      }
    }))

  it("in a setting of a trainer's run say where it belongs", () =>
    withFolder(async (folder) => {
      const file = write(folder, "trainer.yaml", "kind: multirun\ntrainer: { model: nowhere }\nruns: { letters: {} }\n")
      const { stderr } = await effect(["run", file, "--set", "max_steps=5"], folder)
      assert.include(stderr, 'unknown key "max_steps"; it belongs below runs.NAME')
    }))
})
