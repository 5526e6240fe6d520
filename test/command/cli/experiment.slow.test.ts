import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { resultOf, start, until, withFolder, write } from "./effect.ts"
import { at, experiment, filesIn, jsonOf, runsBelow, withServer } from "./experiment.ts"

describe("an experiment's file", () => {
  it("is in its folder from the beginning on, as it is understood", () =>
    withFolder((folder) =>
      withServer({ fault: () => ({ kind: "hung" }) }, async (server) => {
        write(folder, "experiment.yaml", experiment({ lm: { ...at(server), api_key: "secret-0815" } }))
        const { child, ended } = start(["run", "experiment.yaml", "--quiet"], folder)
        await until(() => server.asked.length > 0)
        const [run] = runsBelow(join(folder, "outputs/my_experiment"))
        const config = readFileSync(join(run, "config.yaml"), "utf8")
        for (const said of ["max_steps_per_episode: 50", "temperature: 0.2", "failure_threshold: 1", "words: 8"]) {
          assert.include(config, said)
        }
        child.kill("SIGKILL")
        await ended
        // Calls that had begun are there, whole, and say that they have not ended.
        const calls = filesIn(run).filter((path) => /^llm_calls\/.*[^p]$/.test(path))
        assert.isAbove(calls.length, 0)
        for (const path of calls) {
          assert.deepInclude(jsonOf(join(run, path)), {
            response: null,
            error: null,
            timestamp_end: null,
            retries: null,
          })
        }
        for (const path of filesIn(folder).filter((one) => !/experiment.yaml$|git.diff$/.test(one))) {
          assert.notInclude(readFileSync(join(folder, path), "utf8"), "secret-0815", path)
        }
      }),
    ))

  it("lies where LOGS_DIR says, and never where another one does, whatever the second", () =>
    withFolder(async (folder) => {
      write(folder, "experiment.yaml", experiment({ tasks: 4, heldOut: 4 }))
      const args = ["run", "experiment.yaml", "--quiet", "--json"]
      const env = { ...process.env, LOGS_DIR: join(folder, "logs") }
      const outcomes = await Promise.all([1, 2, 3].map(() => start(args, folder, { env }).ended))
      for (const { code, stderr } of outcomes) assert.strictEqual(code, 0, stderr)
      const runs = runsBelow(join(folder, "logs/outputs/my_experiment"))
      assert.strictEqual(runs.length, 3)
      assert.sameMembers(
        outcomes.map((outcome) => resultOf(outcome).runDir),
        [...runs],
      )
      assert.isFalse(existsSync(join(folder, "outputs/my_experiment")))
      assert.strictEqual(new Set(outcomes.map((outcome) => resultOf(outcome).digest)).size, 1)
    }))
})
