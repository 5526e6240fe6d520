import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { detailOf } from "../../../src/command/ui/detail.ts"
import { openResults } from "../../../src/command/ui/results-node.ts"
import { effect, root, write } from "./effect.ts"

/** `effect runs` and the page over runs of agents that talk, as the command leaves them, in folders that say only when. */

let folder = ""
/** The runs: one of questions, one of a game with three steps an episode and its scores in another folder, and a stopped one of that game. */
let questions = ""
let game = ""
const stopped = "outputs/stopped/20260131_120000"

const experiment = (name: string, dataset: string, more: string) => `
name: ${name}
seed: 3
train_dataset: ${dataset}
validation_dataset: ${dataset}
agent: { type: history_agent, lm_config: { model: "scripted:reader" } }
runtime: { max_steps_per_episode: 3, validation_freq: 4, run_validation_at_start: true, ${more} }
output: { results_dir: outputs/${name} }
`

const run = async (name: string, dataset: string, more = ""): Promise<string> => {
  write(folder, `${name}.yaml`, experiment(name, dataset, more))
  const { code, stdout, stderr } = await effect(["run", `${name}.yaml`, "--quiet", "--json"], folder)
  assert.strictEqual(code, 0, stderr)
  return JSON.parse(stdout).runDir
}

const listed = async (...args: ReadonlyArray<string>): Promise<ReadonlyArray<Record<string, unknown>>> => {
  const { code, stdout, stderr } = await effect(["runs", ...args, "--json"], folder)
  assert.strictEqual(code, 0, stderr)
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))
}

beforeAll(async () => {
  folder = mkdtempSync(join(root, ".tmp-"))
  questions = await run("quiz", "{ type: codebook, num_tasks: 8, words: 2, wordings: 1 }")
  game = await run(
    "house",
    "{ type: key_door, num_tasks: 8 }",
    "scores_path: logs/scores.jsonl, checkpoint_dir: models",
  )
  cpSync(join(folder, game), join(folder, stopped), { recursive: true })
  for (const file of ["metrics.json", "return.json"]) rmSync(join(folder, stopped, file))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const resultOf = (path: string): Record<string, unknown> =>
  JSON.parse(readFileSync(join(folder, path, "metrics.json"), "utf8"))

describe("effect runs over agents that talk", () => {
  it("finds the runs of all experiments in a folder, with their names, steps and validations", async () => {
    const lines = await listed("outputs")
    assert.sameMembers(
      lines.map(({ path }) => path),
      [questions, game, stopped],
    )
    const of = (path: string) => lines.find((line) => line.path === path)
    assert.containSubset(of(questions), { name: "quiz", seed: 3, state: "finished", steps: 8 })
    assert.strictEqual(of(questions)?.validation, Object(resultOf(questions).validation).mean_return)
    assert.isAbove(Number(of(questions)?.validation), 0.5)
    assert.containSubset(of(game), { name: "house", seed: 3, state: "finished", steps: 24, validation: 0 })
    assert.containSubset(of(stopped), { name: "house", seed: 3, state: "stopped", steps: 24, validation: 0 })
  })

  it("filters, sorts and groups by what an experiment says in its own words", async () => {
    const [first, ...others] = await listed("outputs", "--where", "environment=codebook", "--where", "mean_score>0.1")
    assert.strictEqual(first.path, questions)
    assert.isEmpty(others)
    assert.lengthOf(await listed("outputs", "--where", "algorithm=history_agent"), 3)
    assert.lengthOf(await listed("outputs", "--where", "agent.lm_config.model=scripted:reader"), 3)
    assert.lengthOf(await listed("outputs", "--where", "episodes=8"), 2)
    const sorted = await listed("outputs", "--sort", "train_steps:desc", "--finished")
    assert.deepStrictEqual(
      sorted.map(({ path, values }) => [path, values]),
      [
        [game, { train_steps: 24 }],
        [questions, { train_steps: 8 }],
      ],
    )
    const best = await listed("best", "outputs", "--group", "environment", "--by", "mean_score")
    assert.sameDeepMembers(
      best.map(({ group }) => group),
      [{ environment: "codebook" }, { environment: "key_door" }],
    )
  })

  it("shows a run's curve and checkpoints, whether it ended or was stopped, wherever they are", async () => {
    for (const path of [questions, game, stopped]) {
      const [about] = await listed("show", path)
      const curve = Object(about).validations
      assert.deepStrictEqual(
        curve.map(({ step, episodes }: Record<string, number>) => [step, episodes]),
        [0, 4, 8].map((step) => [step, 8]),
      )
      assert.containSubset(Object(about).checkpoints.at(-1), { step: 8, latest: true })
    }
    const [ended] = await listed("show", game)
    const [cut] = await listed("show", stopped)
    assert.deepStrictEqual(ended.validations, cut.validations)
    assert.deepInclude(cut, { resumesFrom: 8 })
  })
})

describe("the page over agents that talk", () => {
  it("knows what each was, and how far it came", async () => {
    const { index } = await Effect.runPromise(openResults(folder))
    await Effect.runPromise(index.refresh)
    const of = (path: string) => index.runs().find((one) => one.path === path)
    assert.containSubset(of(questions), {
      name: "quiz",
      env: "codebook",
      algorithm: "history_agent",
      seed: 3,
      state: "finished",
      steps: 8,
      episodes: 8,
    })
    assert.isTrue(Number.isFinite(Date.parse(of(questions)?.time.replace("_", "T").slice(0, 10) ?? "")))
    const same = {
      name: "house",
      env: "key_door",
      algorithm: "history_agent",
      steps: 24,
      episodes: 8,
      score: 0,
      best: 0,
    }
    assert.containSubset(of(game), { ...same, state: "finished" })
    assert.containSubset(of(stopped), { ...same, state: "stopped", time: "2026-01-31_12-00-00" })
  })

  it("draws a point an episode over the steps of all, and validations where they were", async () => {
    const { curves } = await Effect.runPromise(openResults(folder))
    const { train, validation } = await Effect.runPromise(curves.of(game))
    assert.deepStrictEqual(train.steps, [3, 6, 9, 12, 15, 18, 21, 24])
    assert.deepStrictEqual(train.episodes, [1, 2, 3, 4, 5, 6, 7, 8])
    assert.deepStrictEqual(
      train.mean,
      Array.from({ length: 8 }, () => 0),
    )
    assert.deepStrictEqual(validation.steps, [0, 12, 24])
    assert.deepStrictEqual(validation.episodes, [0, 4, 8])
    const quiz = await Effect.runPromise(curves.of(questions))
    assert.deepStrictEqual(quiz.train.steps, [1, 2, 3, 4, 5, 6, 7, 8])
    const scores = readFileSync(join(folder, questions, "scores/train/scores.jsonl"), "utf8")
      .trimEnd()
      .split("\n")
    assert.deepStrictEqual(
      quiz.train.mean,
      scores.map((line) => JSON.parse(line).score),
    )
    assert.include(quiz.train.mean, 1)
    assert.strictEqual(quiz.validation.mean.at(-1), Object(resultOf(questions).validation).mean_return)
  })

  it("describes a run without its transcripts, which have a page of their own", async () => {
    const results = await Effect.runPromise(openResults(folder))
    await Effect.runPromise(results.index.refresh)
    for (const path of [game, stopped]) {
      const summary = results.index.runs().find((one) => one.path === path)
      assert.isDefined(summary)
      if (summary === undefined) continue
      const { metrics, validations } = await Effect.runPromise(detailOf(results, summary))
      assert.notProperty(Object(metrics), "episodes")
      assert.deepStrictEqual(
        validations.map(({ step, mean, episodes, length, terminated }) => [step, mean, episodes, length, terminated]),
        [0, 12, 24].map((step) => [step, 0, 8, 3, 0]),
      )
    }
  })
})
