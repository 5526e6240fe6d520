import { execFileSync, spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { effect, resultOf, root, withFolder } from "./effect.ts"
import { examplePath } from "../../house/examplePath.ts"

/** Runs an example as its first lines say, and gives its validations and its folder. */
const trained = async (file: string, folder: string) => {
  const outcome = await effect(["run", examplePath(file), "--results-dir", folder, "--quiet", "--json"])
  assert.strictEqual(outcome.code, 0, outcome.stderr)
  const { digest, runDir } = resultOf(outcome)
  const validations: ReadonlyArray<{ step: number; returns_mean: number }> = JSON.parse(
    readFileSync(join(runDir, "return.json"), "utf8"),
  )
  return { digest, runDir, curve: validations.map(({ step, returns_mean }) => [step, returns_mean]) }
}

const linesOf = (...path: ReadonlyArray<string>): ReadonlyArray<Record<string, unknown>> =>
  readFileSync(join(...path), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

const printed = (file: string, ...args: ReadonlyArray<string>): ReadonlyArray<string> =>
  execFileSync(process.execPath, [examplePath(file), ...args], { cwd: root, encoding: "utf8" })
    .trim()
    .split("\n")

describe("examples of agents that talk", () => {
  it("codebook.yaml: an agent that keeps its feedback answers correctly in the end, in every run alike", () =>
    withFolder(async (folder) => {
      const { curve, digest, runDir } = await trained("codebook.yaml", folder)
      assert.deepStrictEqual(curve, [
        [0, 0],
        [20, 0.9],
        [40, 1],
        [60, 1],
      ])
      const rules = linesOf(runDir, "memories/memory_60.jsonl").filter(({ type }) => type === "Reflection")
      // Each word is got wrong once, and never again.
      assert.strictEqual(new Set(rules.map(({ content }) => content)).size, 12)
      assert.strictEqual(rules.length, 12)
      assert.strictEqual(linesOf(runDir, "rollouts/train/rollouts.jsonl").length, 60)
      assert.strictEqual((await trained("codebook.yaml", folder)).digest, digest)
      // The texts of all episodes are in metrics.json; on the screen they would take too much room.
      const { stdout } = await effect(["runs", "show", runDir])
      assert.match(stdout, /^ {2}episodes +60 in metrics\.json$/m)
      assert.match(stdout, /^config \(and \d+ that are null\)$/m)
      assert.notMatch(stdout, /: null$/m)
    }))

  it("own-agent.ts: an agent of one's own is named by a config, and learns", () =>
    withFolder(async (folder) => {
      const { curve, runDir } = await trained("own-agent.ts", folder)
      assert.deepStrictEqual(
        curve.map(([step]) => step),
        [10, 20],
      )
      assert.isAbove(curve[1][1], curve[0][1])
      const memory = readFileSync(join(runDir, "checkpoints/ep_000018/memory_18.jsonl"), "utf8")
      assert.include(memory, "Answer with one word.")
    }))

  it("qa.yaml: the agent finds an answer again for a question in other words", () =>
    withFolder(async (folder) => {
      const { curve, runDir } = await trained("qa.yaml", folder)
      assert.deepStrictEqual(curve, [
        [0, 0],
        [8, 0.5],
        [16, 1],
      ])
      const [first] = linesOf(runDir, "scores/train/scores.jsonl")
      assert.match(String(first.observation), /\[the map room\]\? Answer with a word or two\.$/)
      const call = JSON.parse(
        readFileSync(join(runDir, "llm_calls/train/actions/action_episode_000016_step_0001_call_00.json"), "utf8"),
      )
      // The memory holds fifteen reflections and forty-five other entries; the prompt shows these many.
      const prompt = call.request.messages[1].content
      assert.strictEqual(prompt.match(/^REFLECTION:/gm).length, 3)
      assert.strictEqual(prompt.match(/^(OBSERVATION|ACTION|FEEDBACK):/gm).length, 6)
    }))

  it("reflexion.ts: an agent of one's own parts learns what guests drink", () =>
    withFolder(async (folder) => {
      const { curve, runDir } = await trained("reflexion.ts", folder)
      assert.deepStrictEqual(
        curve.map(([step]) => step),
        [0, 8, 16, 24],
      )
      assert.deepStrictEqual([curve[0][1], curve[3][1]], [0, 1])
      const notes = linesOf(runDir, "memories/memory_24.jsonl").filter(({ type }) => type === "Reflection")
      assert.deepStrictEqual(notes.map(({ content }) => content).sort(), [
        "Ada drinks tea.",
        "Blaise drinks cocoa.",
        "Grace drinks milk.",
        "Pierre drinks lemonade.",
      ])
    }))

  it.skipIf(spawnSync("python3", ["--version"]).status !== 0)(
    "adventure.ts: an agent plays a text adventure that a Python program hosts",
    () =>
      withFolder(async (folder) => {
        const { curve, digest, runDir } = await trained("adventure.ts", folder)
        assert.deepStrictEqual(
          curve.map(([step]) => step),
          [10, 20],
        )
        assert.isAbove(curve[1][1], 0.3)
        const [first] = linesOf(runDir, "scores/train/scores.jsonl")
        assert.match(
          String(first.observation),
          /^Open the chest in the hall\. You are in the hall\. .*\nPossible actions: go /,
        )
        assert.strictEqual((await trained("adventure.ts", folder)).digest, digest)
      }),
  )

  it("learning-lm.ts: rewards alone make a model better, round by round, until it knows a shortest way", () =>
    withFolder(async (folder) => {
      const lines = printed("learning-lm.ts", join(folder, "one"))
      const rows = lines.filter((line) => /^\s*\d/.test(line)).map((line) => line.trim().split(/\s+/).map(Number))
      const [, score, steps, loss] = [0, 1, 2, 3].map((column) => rows.map((row) => row[column]))
      assert.strictEqual(rows.length, 7)
      assert.isBelow(score[0], 0.5)
      assert.strictEqual(score.at(-1), 1)
      assert.isBelow(steps[6], steps[0] / 3)
      assert.deepStrictEqual(
        loss,
        loss.toSorted((a, b) => b - a),
      )
      const [, way, shortest] =
        /^What it learnt: (.+)\. No way is shorter than (\d+) steps\.$/m.exec(lines.join("\n")) ?? []
      assert.strictEqual(way.split(", ").length, Number(shortest))
      assert.deepStrictEqual(printed("learning-lm.ts", join(folder, "two")).slice(0, -2), lines.slice(0, -2))
      for (const file of ["samples.jsonl", "model.json"]) {
        assert.strictEqual(
          readFileSync(join(folder, "one", file), "utf8"),
          readFileSync(join(folder, "two", file), "utf8"),
        )
      }
    }))

  it("react-tools.ts: the model continues after a tool has failed", () => {
    const lines = printed("react-tools.ts")
    assert.strictEqual(lines[0], "Observation: What do 6 pears cost? Answer with a number.")
    assert.deepStrictEqual(
      lines.filter((line) => line.startsWith("  ")),
      ["  price: price failed: there is no pears", "  price: 0.75", "  multiply: 4.5"],
    )
    assert.deepStrictEqual(lines.slice(-2), ["Action: finish[4.5]", "Score: 1"])
  })
})
