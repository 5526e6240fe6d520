import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { parse, stringify } from "yaml"
import { cells, told } from "../capitals.ts"
import { effect, resultOf, withFolder, write } from "../effect.ts"
import { withVariables } from "../withVariables.ts"

const letters = [..."abcdefghijkl"]

/** An evaluation of an agent that was told the answers of the first tasks. */
const evaluation = (knows: number, more: object = {}): string =>
  stringify({
    name: "letters",
    dataset: {
      items: letters.map((letter) => ({ id: `letter-${letter}`, question: `After ${letter}?`, answer: `${letter}!` })),
      id_field: "id",
    },
    agents: {
      mine: {
        type: "memoryless_agent",
        system_prompt:
          letters
            .slice(0, knows)
            .map((one) => `RULE: [After ${one}?] -> ${one}!`)
            .join("; ") || "Answer.",
        lm_config: { model: "scripted:reader" },
      },
    },
    scorers: ["exact", "tokens", "steps"],
    ...more,
  })

const evaluated = async (folder: string, ...args: ReadonlyArray<string>) =>
  resultOf(told(await effect(["eval", ...args, "--json", "--quiet"], folder))).runDir

describe("effect eval --fail-under", () => {
  it("fails if a mean is under its limit, by the direction of the scorer, and prints each gate", () =>
    withFolder(async (folder) => {
      write(folder, "tasks.yaml", evaluation(9))
      const played = await effect(["eval", "tasks.yaml", "--fail-under", "0.8"], folder)
      assert.strictEqual(played.code, 1)
      const line = /^effect: 1 of 1 gates failed: mine: exact 0\.75 \(0\.4677 to 0\.9111\), expected at least 0\.8$/m
      assert.match(played.stderr, line)
      assert.include(cells(played.stdout), "mine: exact 0.75 (0.4677 to 0.9111), expected at least 0.8 | failed")

      // The saved run can be judged by other limits, without being played again.
      const [run] = globSync(join(folder, "results/*/*/*/*"))
      const table: ReadonlyArray<readonly [code: number, ...ReadonlyArray<string>]> = [
        [0, "--fail-under", "0.75"],
        [1, "--fail-under", "0.75", "--strict"],
        [0, "--fail-under", "0.4", "--strict"],
        [0, "--fail-under", "exact=0.7", "--fail-under", "tokens=100000"],
        [1, "--fail-under", "exact=0.7", "--fail-under", "tokens=1"],
        [0, "--fail-under", "0.7", "--agent", "mine"],
      ]
      for (const [code, ...args] of table) {
        const outcome = await effect(["eval", run, ...args, "--json"], folder)
        assert.strictEqual(outcome.code, code, `${args.join(" ")}: ${outcome.stderr}`)
        assert.isArray(resultOf(outcome)["gates"])
      }
      assert.notProperty(resultOf(await effect(["eval", run, "--json"], folder)), "gates")
    }))
})

describe("effect eval --baseline", () => {
  it("fails if the paired interval shows a regression, or with --strict if it doesn't rule one out", () =>
    withFolder(async (folder) => {
      const before = await evaluated(folder, write(folder, "before.yaml", evaluation(12)))
      const slightly = await evaluated(folder, write(folder, "slightly.yaml", evaluation(11)))
      const far = await evaluated(folder, write(folder, "far.yaml", evaluation(3)))
      const table: ReadonlyArray<readonly [code: number, run: string, ...ReadonlyArray<string>]> = [
        // Twelve equal tasks rule out a fall by a quarter, but no smaller one.
        [0, before, "--baseline", before, "--max-regression", "0.25", "--strict"],
        [1, before, "--baseline", before, "--strict"],
        [0, slightly, "--baseline", before, "--max-regression", "0.02"],
        [1, slightly, "--baseline", before, "--max-regression", "0.02", "--strict"],
        [0, slightly, "--baseline", before, "--max-regression", "0.5", "--strict"],
        [1, far, "--baseline", before, "--max-regression", "0.02"],
        [1, far, "--baseline", before],
        [0, far, "--baseline", before, "--max-regression", "1"],
        [0, before, "--baseline", far],
        // Fewer rules in the prompt cost fewer tokens, so the other direction is the regression.
        [0, far, "--baseline", before, "--max-regression", "tokens=0"],
        [1, before, "--baseline", far, "--max-regression", "tokens=0"],
      ]
      for (const [code, run, ...args] of table) {
        const outcome = await effect(["eval", run, ...args], folder)
        assert.strictEqual(outcome.code, code, `${run} ${args.join(" ")}: ${outcome.stderr}`)
      }
      const failed = await effect(["eval", far, "--baseline", before, "--max-regression", "0.02"], folder)
      assert.match(
        failed.stderr,
        /mine: exact -0\.75 \(-\S+ to -\S+\) against mine \(before\); a fall by more than \S+ is shown/,
      )

      // A new evaluation is judged when it is finished; the baseline may be named by a part of its path.
      write(folder, "again.yaml", evaluation(12, { name: "again" }))
      told(await effect(["eval", "again.yaml", "--baseline", before.slice("results/".length)], folder))
    }))

  it("compares only common tasks, and says so", () =>
    withFolder(async (folder) => {
      const before = await evaluated(folder, write(folder, "tasks.yaml", evaluation(12)))
      const args = ["eval", "tasks.yaml", "--set", "dataset.max_samples=8", "--baseline", before]
      const outcome = told(await effect(args, folder))
      assert.include(outcome.stderr, `only 8 tasks are compared: this evaluation has 8, the baseline ${before} has 12`)
    }))

  it("and other gates are refused with what to do, before anything is played", () =>
    withFolder(async (folder) => {
      write(folder, "tasks.yaml", evaluation(3))
      const before = await evaluated(folder, "tasks.yaml", "--set", "scorers=[tokens]")
      const runs = globSync(join(folder, "results/*/*/*/*")).length
      const table: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
        [["--fail-under", "NaN"], "--fail-under NaN: expected a number such as 0.8, or SCORER=0.8"],
        [["--fail-under", "exact=much"], "--fail-under exact=much: expected a number such as 0.8, or SCORER=0.8"],
        [["--fail-under", "=1"], "--fail-under =1: expected a number"],
        [["--fail-under", "1e999"], "--fail-under 1e999: expected a number"],
        [["--fail-under", "exat=1"], '--fail-under exat=1: the evaluation has no scorer "exat"; did you mean "exact"?'],
        [["--fail-under", "steps=1"], "--fail-under steps=1: steps has no direction"],
        [["--fail-under", "1", "--agent", "min"], '--agent min: the evaluation has no such agent; did you mean "mine"?'],
        [["--agent", "mine"], "--agent only works with --fail-under or --baseline"],
        [["--strict"], "--strict only works with --fail-under or --baseline"],
        [["--max-regression", "0.1"], "--max-regression: compared with nothing; name a finished evaluation with --baseline RUN"],
        [["--baseline", before, "--max-regression=-1"], "--max-regression -1: expected 0 or more"],
        [["--baseline", "none"], "--baseline none: no run in results has this in its path"],
        [["--baseline", "tasks.yaml"], "--baseline tasks.yaml: it is not a run (it has no config.yaml)"],
        [["--baseline", before], `--baseline ${before}: the baseline ${before} has no scores of exact; expected one of tokens, or another baseline`],
        [["--baseline", "s3://bucket/run"], "--baseline does not work with runs in a bucket"],
      ] // prettier-ignore
      for (const [args, message] of table) {
        const outcome = await effect(["eval", "tasks.yaml", ...args], folder)
        assert.strictEqual(outcome.code, 2, `${args.join(" ")}: ${outcome.stderr}`)
        assert.include(outcome.stderr, message)
        assert.strictEqual(outcome.stderr.trim().split("\n").length, 1, outcome.stderr)
      }
      assert.strictEqual(globSync(join(folder, "results/*/*/*/*")).length, runs, "nothing was begun")

      const two = await effect(["eval", before, before, "--fail-under", "1"], folder)
      assert.deepEqual([two.code, two.stderr], [2, "effect: --fail-under only works with one evaluation: effect eval NEW --baseline OLD\n"]) // prettier-ignore
      // Only the played tasks show that a baseline is of other ones; the run is saved, and can be judged again.
      const other = evaluation(3, { dataset: { items: [{ id: "x", question: "X?", answer: "x" }], id_field: "id" } })
      write(folder, "other.yaml", other)
      const otherTasks = await effect(["eval", "other.yaml", "--baseline", before, "--max-regression", "tokens=0", "--quiet"], folder) // prettier-ignore
      assert.strictEqual(otherTasks.code, 2)
      assert.match(otherTasks.stderr, /no task is in both evaluations; expected an evaluation of the same tasks: effect eval \S+ --baseline RUN judges/) // prettier-ignore
    }))
})

describe("effect eval and failed episodes", () => {
  /** An evaluation with a second agent, whose server can not be reached. */
  const withOther = evaluation(12, {
    agents: {
      ...parse(evaluation(12)).agents,
      other: { lm_config: { model: "none", base_url: "http://127.0.0.1:1/v1", api_key: "none", max_retries: 0 } },
    },
  })

  it("fails the gates of an agent that has no score, and counts failures for a finished evaluation that is judged", () =>
    withFolder(async (folder) => {
      const before = await evaluated(folder, write(folder, "before.yaml", evaluation(12)))
      write(folder, "after.yaml", withOther)
      const gate = "other: no task has a value of exact on both sides, expected a comparison"
      const played = await effect(["eval", "after.yaml", "--baseline", before, "--max-failures", "100%"], folder)
      assert.strictEqual(played.code, 1, played.stderr)
      assert.match(played.stderr, new RegExp(`1 of 2 gates failed: ${gate}\n$`))

      const [run] = globSync("results/*/*/*/*", { cwd: folder }).filter((one) => one !== before)
      const failures = /12 of 24 episodes failed: 12 × /
      const judged = ["eval", run, "--fail-under", "0.9", "--agent", "mine", "--summary", "x.md"]
      assert.strictEqual((await effect(judged, folder)).code, 1)
      assert.match(readFileSync(join(folder, "x.md"), "utf8"), /^### Evaluation letters: 12 of 24 episodes failed\n/)
      const table: ReadonlyArray<readonly [code: number, message: RegExp | string, ...ReadonlyArray<string>]> = [
        [0, "", "--quiet"],
        [0, "", "--summary", "summary.md"],
        [1, failures, "--max-failures", "0"],
        [0, "", "--max-failures", "50%"],
        [1, failures, "--fail-under", "0.9", "--agent", "mine"],
        [0, "", "--fail-under", "0.9", "--agent", "mine", "--max-failures", "12"],
        [0, "", "--baseline", before, "--agent", "mine", "--max-failures", "12"],
        [1, gate, "--baseline", before, "--agent", "other", "--max-failures", "12"],
      ]
      for (const [code, message, ...args] of table) {
        const outcome = await effect(["eval", run, ...args], folder)
        assert.strictEqual(outcome.code, code, `${args.join(" ")}: ${outcome.stderr}`)
        assert.match(outcome.stderr, message instanceof RegExp ? message : new RegExp(message), args.join(" "))
      }
    }))

  it("warns if tasks have no score on both sides", () =>
    withFolder(async (folder) => {
      const before = await evaluated(folder, write(folder, "tasks.yaml", evaluation(12)))
      const after = await evaluated(folder, "tasks.yaml")
      const file = join(folder, after, "episodes.jsonl")
      const lines = readFileSync(file, "utf8").trim().split("\n")
      const unscored = lines.map((line, at) => (at < 5 ? JSON.stringify({ ...JSON.parse(line), scores: {} }) : line))
      writeFileSync(file, unscored.join("\n"))
      const outcome = told(await effect(["eval", after, "--baseline", before], folder))
      assert.include(outcome.stderr, "only 7 tasks are compared: this evaluation has 12")
    }))
})

describe("effect eval with tasks that have the ids of other tasks", () => {
  it("compares nothing, but prints and writes everything else", () =>
    withFolder(async (folder) => {
      const question = (letter: string) => ({ question: `After ${letter}?`, answer: `${letter}!` })
      const numbered = (...asked: ReadonlyArray<string>) =>
        evaluation(12, { dataset: { items: asked.map((letter, id) => ({ id, ...question(letter) })), id_field: "id" } })
      const before = await evaluated(folder, write(folder, "before.yaml", numbered(...letters)))
      write(folder, "after.yaml", numbered("z", ...letters))
      const args = ["eval", "after.yaml", "--baseline", before, "--fail-under", "0.5", "--junit", "x.xml", "--summary", "x.md"]
      const outcome = await effect(args, folder)
      assert.strictEqual(outcome.code, 2, outcome.stderr)
      assert.match(outcome.stderr, /the task 0 has the right answer "a!" in one evaluation and "z!" in the other/)
      assert.match(outcome.stdout, /mine: exact \S+ \(.*\), expected at least 0\.5 +passed/)
      assert.match(outcome.stdout, /mine: exact could not be compared with the baseline +failed/)
      assert.match(readFileSync(join(folder, "x.xml"), "utf8"), /<failure [^>]*exact could not be compared with the baseline/)
      assert.match(readFileSync(join(folder, "x.md"), "utf8"), /^### Evaluation letters: 1 of 2 gates failed/)

      const [after] = globSync("results/*/*/*/*", { cwd: folder }).filter((run) => run !== before)
      const compared = await effect(["eval", before, after], folder)
      assert.strictEqual(compared.code, 1)
      assert.include(compared.stderr, "the task 0 has the right answer")
      const alone = told(await effect(["eval", "after.yaml", "--set", `compare_to=${before}`, "--json", "--quiet"], folder))
      assert.deepEqual(JSON.parse(alone.stdout).report.comparisons, [])
      // The same questions can be compared, and a longer list begins as the shorter one.
      write(folder, "longer.yaml", numbered(...letters, "z"))
      told(await effect(["eval", "longer.yaml", "--baseline", before, "--quiet"], folder))
    })) // prettier-ignore

  it("compares questions without ids by their content, so that one may be inserted", () =>
    withFolder(async (folder) => {
      const asking = (asked: ReadonlyArray<string>) =>
        evaluation(12, { dataset: { items: asked.map((letter) => ({ question: `After ${letter}?`, answer: `${letter}!` })) } })
      const before = await evaluated(folder, write(folder, "before.yaml", asking(letters)))
      write(folder, "after.yaml", asking(["z", ...letters]))
      const { stderr } = told(await effect(["eval", "after.yaml", "--baseline", before], folder))
      assert.include(stderr, "only 12 tasks are compared: this evaluation has 13, the baseline")
    })) // prettier-ignore
})

describe("effect eval --summary and --junit", () => {
  it("write what a job on GitHub and a test report show", () =>
    withFolder(async (folder) => {
      write(folder, "tasks.yaml", evaluation(9, { name: "<b>|letters", agents: { "a|b<i>": { lm_config: { model: "scripted:reader" } } } })) // prettier-ignore
      const args = ["eval", "tasks.yaml", "--quiet", "--fail-under", "0.8", "--junit", "out/junit.xml", "--summary"]
      const played = await effect([...args, "out/summary.md"], folder)
      assert.strictEqual(played.code, 1, played.stderr)
      const summary = readFileSync(join(folder, "out/summary.md"), "utf8")
      assert.match(summary, /^### Evaluation &lt;b\\>\\\|letters: 1 of 1 gates failed\n\n\| gate \| result \|\n/)
      assert.include(summary, "| agent | score | mean | 95 % | tasks |")
      assert.include(summary, "| a\\|b&lt;i\\> | exact | 0.000 |")
      const xml = readFileSync(join(folder, "out/junit.xml"), "utf8")
      assert.match(xml, /<testsuites name="&#60;b&#62;\|letters" tests="13" failures="13" errors="0"/)

      // The first scorer decides, also if it scored nothing: this judge gives no verdict.
      const judge = { type: "judge", rubric: "Is it polite?", lm_config: { model: "builtin:choice:Hm" } }
      write(folder, "judged.yaml", evaluation(0, { scorers: [judge, "tokens"] }))
      told(await effect(["eval", "judged.yaml", "--quiet", "--junit", "judged.xml"], folder))
      assert.include(
        readFileSync(join(folder, "judged.xml"), "utf8"),
        '<skipped message="judge had nothing to score"/>',
      )

      // Any other file is replaced; the one that the commands of a step share is appended to.
      const run = globSync(join(folder, "results/*/*/*/*"))[0]
      await effect(["eval", run, "--summary", "out/summary.md"], folder)
      assert.notInclude(readFileSync(join(folder, "out/summary.md"), "utf8"), "gates failed")
      const shared = write(folder, "step.md", "before\n")
      const twice = async () => {
        for (const file of [shared, "step.md"]) told(await effect(["eval", run, "--summary", file], folder))
      }
      const variables = withVariables({ GITHUB_STEP_SUMMARY: shared })
      await Effect.runPromise(Effect.scoped(Effect.andThen(variables, Effect.promise(twice))))
      assert.strictEqual(readFileSync(shared, "utf8").match(/^(before|### Evaluation)/gm)?.length, 3)
    }))

  it("are refused where they can not be written", () =>
    withFolder(async (folder) => {
      write(folder, "file", "")
      write(folder, "tasks.yaml", evaluation(3))
      const run = await evaluated(folder, "tasks.yaml")
      const refused = await effect(["eval", run, "--junit", "file/x.xml"], folder)
      assert.strictEqual(refused.code, 2)
      assert.match(refused.stderr, /^effect: --junit file\/x\.xml: /m)
      assert.isFalse(existsSync(join(folder, "file/x.xml")))
    }))
})
