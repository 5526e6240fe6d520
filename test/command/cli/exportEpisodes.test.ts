import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { evaluation, told } from "./capitals.ts"
import { effect, resultOf, withFolder, write } from "./effect.ts"

const json = (file: string) => JSON.parse(readFileSync(file, "utf8"))

describe("effect export --to atif", () => {
  it("writes a trajectory for each episode of an evaluation, with its scores", () =>
    withFolder(async (folder) => {
      const { runDir } = resultOf(
        await effect(["eval", write(folder, "tasks.yaml", evaluation()), "--quiet", "--json"], folder),
      )
      told(await effect(["export", runDir, "--to", "atif", "--out", "out"], folder))
      assert.deepEqual(readdirSync(join(folder, "out")).toSorted(), ["reads", "says_rome"])
      const names = readdirSync(join(folder, "out", "reads")).toSorted()
      assert.strictEqual(names.length, 12)
      assert.strictEqual(names[1], "000002_task-0-1.json")
      const trajectory = json(join(folder, "out", "reads", names[1]))
      assert.deepEqual([trajectory.schema_version, trajectory.trajectory_id], ["ATIF-v1.7", "task-0-1"])
      assert.deepEqual(trajectory.final_metrics.extra, { reward: 1, scores: { exact: 1, steps: 1 } })
      assert.deepEqual(
        trajectory.steps.map(({ source }: { source: string }) => source),
        ["system", "user", "agent"],
      )

      const twice = await effect(["export", runDir, "--to", "atif", "--out", "out"], folder)
      assert.strictEqual(twice.code, 2)
      assert.include(twice.stderr, "--out out: expected a new or empty folder")
      assert.notInclude(readdirSync(folder).join(" "), ".out")
    }))

  it("refuses an evaluation whose episodes all failed", () =>
    withFolder(async (folder) => {
      const sample = { id: 1, epoch: 1, input: "?", target: "", messages: [], error: { message: "no answer" } }
      const log = { version: 2, status: "error", eval: { task: "t", model: "m" }, samples: [sample] }
      const { runDir } = resultOf(
        await effect(["import", write(folder, "log.json", JSON.stringify(log)), "--json"], folder),
      )
      const { code, stderr } = await effect(["export", runDir, "--to", "inspect"], folder)
      assert.strictEqual(code, 2)
      assert.include(stderr, "expected episodes with rollouts, found none; all episodes of the evaluation failed")
    }))
})
