import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { runsIn } from "../crash.ts"
import { effect, program, start, until, withFolder, write } from "../effect.ts"

const space = `
trials: 5
parallel: 2
sampler: { startup: 2 }
parameters:
  algorithm.learning_rate: { log_uniform: [1e-4, 1e-2] }
  num_envs: { choice: [4, 8] }
`

const studyOf = (folder: string, results: string): string =>
  join(folder, results, readFileSync(join(folder, results, "index.txt"), "utf8").split("/")[1])

describe("a study whose processes are all killed", () => {
  it("has, when it is resumed, the records of one that was never killed", () =>
    withFolder(async (folder) => {
      const settings = "validation: { everySteps: 2048, episodes: 2 }, checkpoint: { everySteps: 1024 }"
      const file = write(folder, "train.ts", program(settings).replace("2048", "20_480"))
      const args = ["tune", file, "--space", write(folder, "space.yaml", space), "--quiet"]
      const whole = await effect([...args, "--results-dir", "whole"], folder)
      assert.strictEqual(whole.code, 0, whole.stderr)

      const results = join(folder, "killed")
      for (const [kill, runs] of [1, 3].entries()) {
        const resume = kill === 0 ? [] : ["--resume", "latest"]
        const { child, ended } = start([...args, ...resume, "--results-dir", "killed"], folder, { detached: true })
        await until(() => runsIn(results).length >= runs)
        process.kill(-(child.pid ?? NaN), "SIGKILL")
        assert.strictEqual((await ended).signal, "SIGKILL")
      }
      const resumed = await effect([...args, "--resume", "latest", "--results-dir", "killed"], folder)
      assert.strictEqual(resumed.code, 0, resumed.stderr)
      for (const name of ["trials.jsonl", "best.yaml"]) {
        const [one, other] = ["whole", "killed"].map((dir) => readFileSync(join(studyOf(folder, dir), name), "utf8"))
        assert.strictEqual(other, one)
      }
    }))

  it("can't be run by two processes at once", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("").replace("2048", "20_000_000"))
      const args = ["tune", file, "--space", write(folder, "space.yaml", space), "--results-dir", "results"]
      const { child, ended } = start(args, folder)
      await until(() => runsIn(join(folder, "results")).length >= 1)
      const second = await effect([...args, "--resume", "latest"], folder)
      assert.strictEqual(second.code, 1)
      assert.match(second.stderr, /sweep\.lock: process \d+ .* is writing this run; wait until it ends, or stop it/)
      child.kill("SIGINT")
      const { code, stderr } = await ended
      assert.strictEqual(code, 130)
      assert.match(stderr, /interrupted; resume with: npx effect tune .* --resume results\//)
    }))
})
