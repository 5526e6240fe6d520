/** Learned texts in other runs, whose configs name the run that learned them as commands name runs. */
import { mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { stringify } from "yaml"
import { assert, describe, it } from "vitest"
import { effect, resultOf, withFolder, write } from "./effect.ts"

const learned = "RULE: [tea] -> green"

/** Writes the files of a run that learned a system prompt, which are all that another run reads. */
const writeLearned = (folder: string): void => {
  const run = join(folder, "results/2026-01-02_03-04-05/no-hash_tea_environment_algorithm/tea_gepa/0001")
  mkdirSync(run, { recursive: true })
  write(run, "config.yaml", "kind: prompts\nname: tea\n")
  write(run, "texts.json", JSON.stringify({ system_prompt: learned }))
}

const reader = { type: "memoryless_agent", system_prompt: "Answer.", lm_config: { model: "scripted:reader" } }
const tasks = { items: [1, 2, 3, 4].map(() => ({ question: "[tea]", answer: "green" })) }

/** A program that answers with the end of the text that it is sent. */
const program = `const {texts} = JSON.parse(require("node:fs").readFileSync(0, "utf8")); console.log(texts.system_prompt.split(" -> ")[1])`

const asModule = `import { Evaluations, FunctionAgent } from "effect-rl"
const mine = FunctionAgent.make("mine", (_, { text }) => text("system_prompt", "none -> none").split(" -> ")[1])
export default Evaluations.fromConfig({
  dataset: { items: [{ question: "[tea]", answer: "green" }] },
  agent: { type: mine, texts: "latest" },
  scorers: ["score"],
})
`

/** Runs a command with a file of this content, and returns its result and the config that it saved. */
const ran = async (folder: string, command: "run" | "eval", config: unknown) => {
  const isModule = typeof config === "string"
  const file = write(folder, isModule ? "own.ts" : "own.yaml", isModule ? config : stringify(config))
  const flags = ["--json", "--quiet", ...(command === "eval" ? ["--trust"] : [])]
  const outcome = await effect([command, file, ...flags], folder)
  assert.strictEqual(outcome.code, 0, outcome.stderr)
  const result = resultOf(outcome)
  return { result, saved: readFileSync(join(folder, result.runDir, "config.yaml"), "utf8") }
}

const agents: ReadonlyArray<readonly [string, unknown]> = [
  ["an agent of a config", { dataset: tasks, agent: { ...reader, texts: "latest" } }],
  ["a function agent", asModule],
  [
    "a command agent",
    { dataset: tasks, agent: { type: "command", command: ["node", "-e", program], texts: "latest" } },
  ],
]

describe("the texts of an earlier run", () => {
  it.each(agents)("are those of %s in an evaluation", (_, config) =>
    withFolder(async (folder) => {
      writeLearned(folder)
      const { result, saved } = await ran(folder, "eval", config)
      assert.match(JSON.stringify(result["report"]), /"scorer":"score",[^}]*"mean":1,/)
      // The saved config has the texts themselves: another run may be the newest one later.
      assert.include(saved, learned)
    }),
  )

  it.each([
    "latest",
    "2026-01-02",
    "results/2026-01-02_03-04-05/no-hash_tea_environment_algorithm/tea_gepa/0001",
    "results/2026-01-02_03-04-05/no-hash_tea_environment_algorithm/tea_gepa/0001/texts.json",
  ])("are where a training begins that names them by %s", (texts) =>
    withFolder(async (folder) => {
      writeLearned(folder)
      const training = { train_dataset: tasks, agent: reader, start: { texts } }
      const { result, saved } = await ran(folder, "run", training)
      assert.strictEqual(result["meanScore"], 1)
      assert.include(saved, learned)
      assert.include(saved, "start: null")
    }),
  )

  it("are where a further search begins", () =>
    withFolder(async (folder) => {
      writeLearned(folder)
      const learner = { type: "gepa", reflection_lm_config: { model: "scripted:reader" }, max_metric_calls: 10 }
      const search = { kind: "prompts", agent: reader, dataset: tasks, start: { texts: "latest" }, learner }
      const { result } = await ran(folder, "run", search)
      const { candidates } = JSON.parse(readFileSync(join(folder, result.runDir, "candidates.json"), "utf8"))
      assert.strictEqual(candidates[0].texts.system_prompt, learned)
    }))

  it("are asked for by name: the message says where they were looked for", () =>
    withFolder(async (folder) => {
      const training = { train_dataset: tasks, agent: reader, start: { texts: "none" } }
      const file = write(folder, "own.yaml", stringify(training))
      const { code, stderr } = await effect(["run", file, "--quiet"], folder)
      assert.strictEqual(code, 2, stderr)
      assert.match(
        stderr,
        /own\.yaml:\d+: start\.texts: expected texts\.json or a run that learned texts, found nothing at /,
      )
      const both = { ...training, agent: { ...reader, texts: "none" } }
      write(folder, "own.yaml", stringify(both))
      assert.match((await effect(["run", file, "--quiet"], folder)).stderr, /start\.texts: the agent has texts already/)
    }))
})
