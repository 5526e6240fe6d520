import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { killAndResume, runsIn, scoresOf } from "../crash.ts"
import { effect, isTraining, program, resultOf, start, until, withFolder, write } from "../effect.ts"

const settings = "totalSteps: 40960, validation: { everySteps: 5000, episodes: 4 }, checkpoint: { everySteps: 2000 }"

const validations = (runDir: string): ReadonlyArray<string> => readdirSync(join(runDir, "scores/val")).sort()

describe("a run is the same run", () => {
  it("when it is killed and resumed, again and again", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(settings))
      const whole = resultOf(await effect(["run", file, "--results-dir", join(folder, "whole"), "--json", "--quiet"]))
      const { digest, kills, runDir } = await killAndResume(file, join(folder, "killed"), [60, 10, 130])
      assert.isAbove(kills, 0)
      assert.strictEqual(digest, whole.digest)
      assert.deepStrictEqual(scoresOf(runDir), scoresOf(whole.runDir))
      assert.deepStrictEqual(validations(runDir), validations(whole.runDir))
    }))

  it("when it is killed before it has saved anything, and starts over", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("totalSteps: 120_000, checkpoint: { everySteps: 0 }"))
      const results = join(folder, "results")
      const args = ["run", file, "--results-dir", results, "--json", "--quiet"]
      const { child, ended } = start(args)
      await until(() => runsIn(results).some(isTraining))
      child.kill("SIGKILL")
      await ended
      const resumed = resultOf(await effect([...args, "--resume", "latest"]))
      const whole = resultOf(await effect(["run", file, "--results-dir", join(folder, "whole"), "--json", "--quiet"]))
      assert.strictEqual(resumed.digest, whole.digest)
      assert.deepStrictEqual(scoresOf(resumed.runDir), scoresOf(whole.runDir))
    }))

  it("when Ctrl-C stops it, which saves it and says how to go on", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("totalSteps: 120_000, checkpoint: { everySteps: 0 }"))
      const whole = resultOf(await effect(["run", file, "--results-dir", join(folder, "whole"), "--json", "--quiet"]))
      const { child, ended } = start(["run", file, "--results-dir", join(folder, "stopped"), "--quiet", "--json"])
      await until(() => runsIn(join(folder, "stopped")).some(isTraining))
      child.kill("SIGINT")
      const { code, stderr, stdout } = await ended
      assert.strictEqual(code, 130, stderr)
      assert.strictEqual(stdout, "")
      const resume = /effect run (\S+) --resume (\S+)/.exec(stderr)
      assert.isNotNull(resume)
      const [, resumedFile, runDir] = resume
      assert.include(readFileSync(join(runDir, "run.log"), "utf8"), "interrupted at step")
      assert.isTrue(existsSync(join(runDir, "checkpoints/latest/manifest.json")))
      const resumed = resultOf(await effect(["run", resumedFile, "--resume", runDir, "--json", "--quiet"]))
      assert.strictEqual(resumed.digest, whole.digest)
      assert.deepStrictEqual(scoresOf(runDir), scoresOf(whole.runDir))
    }))

  it.skipIf(process.platform === "win32")(
    "when somebody looks at it in between, by SIGUSR1, and gets a whole step",
    () =>
      withFolder(async (folder) => {
        const file = write(folder, "train.ts", program("totalSteps: 200_000, checkpoint: { everySteps: 10_000 }"))
        const args = (results: string) => ["run", file, "--results-dir", join(folder, results), "--json"]
        const whole = resultOf(await effect(args("whole")))
        const { child, ended } = start(args("seen"))
        const running = (): string | undefined => {
          const [run] = runsIn(join(folder, "seen"))
          return run !== undefined && existsSync(join(run, "checkpoints/latest")) ? run : undefined
        }
        await until(() => running() !== undefined)
        child.kill("SIGUSR1")
        const outcome = await ended
        assert.strictEqual(outcome.code, 0, outcome.stderr)
        const seen = resultOf(outcome)
        const [step, ...others] = readdirSync(join(seen.runDir, "steps"))
        assert.deepStrictEqual(others, [])
        assert.isBelow(Number(step), 200_000)
        const found = readdirSync(join(seen.runDir, "steps", step))
        assert.includeMembers(found, [
          "checkpoint.h5",
          "checkpoint.onnx",
          "episode.svg",
          "evaluation_results.json",
          "trajectories.json.gz",
        ])
        assert.include(readFileSync(join(seen.runDir, "run.log"), "utf8"), `on request: steps/${step}`)
        assert.strictEqual(seen.digest, whole.digest)
        assert.deepStrictEqual(scoresOf(seen.runDir), scoresOf(whole.runDir))
        const [one, other] = [seen, whole].map(({ runDir }) => readFileSync(join(runDir, "return.json"), "utf8"))
        assert.strictEqual(one, other)
        assert.deepStrictEqual(
          readdirSync(join(seen.runDir, "checkpoints")).sort(),
          readdirSync(join(whole.runDir, "checkpoints")).sort(),
        )
      }),
  )
})
