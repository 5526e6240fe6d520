import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { runsIn } from "./crash.ts"
import { effect, program, resultOf, root, start, until, withFolder, write } from "./effect.ts"

describe("effect runs", () => {
  it("sees a run that is running, how far it is, and that it was killed", () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      const settings = program("validation: { everySteps: 512, episodes: 2 }").replace("2048", "100_000_000")
      const { child, ended } = start(["run", write(folder, "long.ts", settings), "--results-dir", results, "--quiet"])
      const look = async (): Promise<Readonly<Record<string, unknown>>> =>
        JSON.parse((await effect(["runs", results, "--json"])).stdout)
      await until(() => runsIn(results).length > 0)
      let found = await look()
      while (typeof found.validation !== "number") found = await look()
      child.kill("SIGKILL")
      await ended
      assert.include(found, { state: "running", name: "long" })
      assert.isAbove(Number(found.steps), 0)
      assert.isNumber(found.validation)
      const killed = await look()
      assert.strictEqual(killed.state, "stopped")
      assert.isAtLeast(Number(killed.steps), Number(found.steps))
      assert.lengthOf(runsIn(results), 1)
    }))

  it("ignores a reader that closes the pipe early", () =>
    withFolder(async (folder) => {
      const training = program("totalSteps: 128")
      const { runDir } = resultOf(
        await effect(["run", write(folder, "train.ts", training), "--results-dir", join(folder, "results"), "--json"]),
      )
      const command = `"${process.execPath}" "${join(root, "bin/effect.js")}" runs "${join(folder, "results")}" --json`
      const { status, stderr } = spawnSync("bash", ["-c", `set -o pipefail; ${command} | true`], { encoding: "utf8" })
      assert.deepEqual([status, stderr], [0, ""], runDir)
    }))
})
