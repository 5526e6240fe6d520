import { existsSync, globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { evaluation, told } from "../capitals.ts"
import { begin, effect, resultOf, until, withFolder, write } from "../effect.ts"

/** An evaluation as a program, with the tasks and agents of capitals.ts. */
const program = (more: object = {}): string =>
  `import { Evaluations } from "effect-rl"\nexport default Evaluations.fromConfig(${JSON.stringify(parse(evaluation(more)))})\n`

describe("effect eval FILE.ts", () => {
  it("plays the evaluation that the program exports, as effect run does, and saves the program", () =>
    withFolder(async (folder) => {
      write(folder, "mine.ts", program())
      write(folder, "mine.yaml", evaluation())
      const played = told(await effect(["eval", "mine.ts"], folder))
      assert.match(played.stdout, /^agent +score +mean +95 % +tasks\nsays_rome +exact +0\.167 /)
      const [run] = globSync(join(folder, "results/*/*/*/*"))
      assert.include(played.stdout, run.slice(folder.length + 1))
      assert.isTrue(existsSync(join(run, "code")), "the program is saved")

      const digestOf = async (...args: ReadonlyArray<string>) =>
        resultOf(told(await effect([...args, "--json", "--quiet"], folder))).digest
      const digest = await digestOf("eval", run)
      assert.strictEqual(await digestOf("eval", "mine.yaml"), digest)
      assert.strictEqual(await digestOf("run", "mine.ts"), digest)
      assert.strictEqual(await digestOf("eval", "mine.ts", "--seed", "1"), digest)
      const changed = ["--seed", "2", "--set", "repeats=1", "--name", "other"]
      const other = resultOf(told(await effect(["eval", "mine.ts", ...changed, "--json", "--quiet"], folder)))
      const saved = parse(readFileSync(join(folder, other.runDir, "config.yaml"), "utf8"))
      assert.deepInclude(saved, { name: "other", seed: 2, repeats: 1 })
      assert.strictEqual(await digestOf("run", "mine.ts", ...changed), other.digest)
    }))

  it("resumes the newest evaluation with the name in the program, and only that", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      write(folder, "mine.ts", program())
      write(folder, "other.ts", program({ name: "another" }))
      const slow = begin(["eval", "mine.ts", "--set", "repeats=60", "--set", "workers=1", "--quiet"], folder)
      await until(() => globSync(join(folder, "results/*/*/*/*/played.jsonl")).length > 0)
      slow.interrupt()
      const stopped = await slow.ended
      assert.strictEqual(stopped.code, 130, stopped.stderr)
      assert.match(stopped.stderr, /interrupted; resume with: npx effect eval mine\.ts --resume \S+ --set repeats=60/)
      const none = await effect(["eval", "other.ts", "--resume", "latest"], folder)
      assert.deepEqual([none.code, none.stderr], [2, "effect: --resume latest: there is no evaluation named another in results\n"]) // prettier-ignore
      const again = ["eval", "mine.ts", "--resume", "latest", "--set", "repeats=60", "--json"]
      const resumed = resultOf(told(await effect(again, folder)))
      assert.strictEqual(resumed["episodes"], 6 * 2 * 60)
      assert.strictEqual(globSync(join(folder, "results/*/*/*/*")).length, 1)
    }),
  )

  it("scores with functions of the program, and says of its saved config that it lacks them", () =>
    withFolder(async (folder) => {
      const own = `import { Evaluations, Scorer } from "effect-rl"
const Length = async ({ output }) => ({ name: "Length", score: output.length / 4 })
export default Evaluations.fromConfig({ ...${JSON.stringify(parse(evaluation()))}, scorers: [
  "exact", Scorer.fromFunction(Length), Scorer.make("cheap", ({ steps }) => steps.length, { direction: "lower" })] })
`
      write(folder, "mine.ts", own)
      const args = ["eval", "mine.ts", "--fail-under", "Length=1", "--fail-under", "cheap=1", "--json", "--quiet"]
      const { runDir, report } = resultOf(told(await effect(args, folder)))
      assert.include(JSON.stringify(report), '"scorer":"cheap","direction":"lower","tasks":6,"mean":1,')
      const saved = parse(readFileSync(join(folder, runDir, "config.yaml"), "utf8"))
      assert.deepEqual(saved.scorers[1], { type: "code", name: "Length", direction: "higher" })
      const again = await effect(["eval", join(runDir, "config.yaml")], folder)
      assert.strictEqual(again.code, 2)
      assert.match(again.stderr, /config\.yaml:\d+: scorers\.1: "Length" is a scorer of a program, which is not in the config; evaluate the program itself\n$/) // prettier-ignore
    }))

  it("says in a line what the program lacks, before anything is played", () =>
    withFolder(async (folder) => {
      write(folder, "training.ts", 'import { CartPole, Ppo, Train } from "effect-rl"\nexport default Train.run({ env: CartPole.env, algorithm: Ppo.make({}), totalSteps: 64 })\n') // prettier-ignore
      write(folder, "agents.ts", `import { Runtime } from "effect-rl"\nexport default Runtime.fromConfig(${JSON.stringify({ train_dataset: { type: "codebook" }, agent: { type: "history_agent", lm_config: { model: "scripted:reader" } } })})\n`) // prettier-ignore
      write(folder, "none.ts", "export const evaluation = 1\n")
      write(folder, "function.ts", "export default () => 1\n")
      write(folder, "other.ts", 'import { Effect } from "effect"\nexport default Effect.succeed({ runDir: "x" })\n')
      write(folder, "mine.ts", program())
      const table: ReadonlyArray<readonly [ReadonlyArray<string>, number, string]> = [
        [["training.ts"], 2, "training.ts: this is a training, not an evaluation (it has no tasks to evaluate on); train it with effect run training.ts"], // prettier-ignore
        [["agents.ts"], 2, "agents.ts: this is a training, not an evaluation"],
        [["none.ts"], 2, "none.ts: it has no default export; expected export default Evaluations.fromConfig({ … })"],
        [["function.ts"], 2, "function.ts: its default export is a function; expected Evaluations.fromConfig({ … }) itself"], // prettier-ignore
        [["other.ts"], 1, "other.ts: expected a default export that returns the result of Evaluations.fromConfig"],
        [["missing.ts"], 2, "missing.ts: there is no such file"],
        [["mine.ts", "--set", "repeat=3"], 2, '--set: unknown key "repeat"; did you mean "repeats"?'],
        [["mine.ts", "--episodes", "3"], 2, "--episodes only works with a run: effect eval RUN"],
        [["mine.ts", "--resume", "latest"], 2, "--resume latest: there is no evaluation named capitals in results"],
      ]
      for (const [args, code, message] of table) {
        const outcome = await effect(["eval", ...args], folder)
        assert.strictEqual(outcome.code, code, `${args.join(" ")}: ${outcome.stderr}`)
        assert.include(outcome.stderr, message)
        assert.strictEqual(outcome.stderr.trim().split("\n").length, 1, outcome.stderr)
      }
      assert.isFalse(existsSync(join(folder, "results")), "nothing was begun")
    }))
})
