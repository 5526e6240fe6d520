import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import { killAndResume, runsIn, scoresOf } from "./crash.ts"
import { effect, program, resultOf, start, withFolder, write } from "./effect.ts"

const settings = "totalSteps: 40960, validation: { everySteps: 5000, episodes: 4 }, checkpoint: { everySteps: 2000 }"

const validations = (runDir: string): ReadonlyArray<string> => readdirSync(join(runDir, "scores/val")).sort()

describe("a run is the same run", () => {
  it("when it is done twice", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(settings))
      const args = ["run", file, "--results-dir", join(folder, "results"), "--json", "--quiet"]
      const [first, second] = [resultOf(await effect(args)), resultOf(await effect(args))]
      assert.strictEqual(first.digest, second.digest)
      assert.deepStrictEqual(scoresOf(first.runDir), scoresOf(second.runDir))
      assert.notStrictEqual(resultOf(await effect([...args, "--seed", "2"])).digest, first.digest)
    }))

  it("when it is repeated from its own config.yaml", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(settings))
      const args = ["--results-dir", join(folder, "results"), "--json", "--quiet"]
      const first = resultOf(await effect(["run", file, ...args, "--seed", "3"]))
      const again = resultOf(await effect(["run", join(first.runDir, "config.yaml"), ...args]))
      assert.strictEqual(again.digest, first.digest)
    }))

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
      const file = write(folder, "train.ts", program(settings.replace("everySteps: 2000", "everySteps: 0")))
      const results = join(folder, "results")
      const args = ["run", file, "--results-dir", results, "--json", "--quiet"]
      const { child, ended } = start(args)
      while (runsIn(results).length === 0) await sleep(5)
      await sleep(100)
      child.kill("SIGKILL")
      await ended
      const resumed = resultOf(await effect([...args, "--resume", "latest"]))
      const whole = resultOf(await effect(["run", file, "--results-dir", join(folder, "whole"), "--json", "--quiet"]))
      assert.strictEqual(resumed.digest, whole.digest)
      assert.deepStrictEqual(scoresOf(resumed.runDir), scoresOf(whole.runDir))
    }))

  it("when Ctrl-C stops it, which saves it and says how to go on", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(settings.replace("everySteps: 2000", "everySteps: 0")))
      const whole = resultOf(await effect(["run", file, "--results-dir", join(folder, "whole"), "--json", "--quiet"]))
      const { child, ended } = start(["run", file, "--results-dir", join(folder, "stopped"), "--quiet", "--json"])
      while (runsIn(join(folder, "stopped")).length === 0) await sleep(5)
      await sleep(100)
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
        while (running() === undefined) await sleep(5)
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
        assert.include(readFileSync(join(seen.runDir, "run.log"), "utf8"), `as was wanted: steps/${step}`)
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

  it("when the newest checkpoint is damaged: the one before it is taken, and run.log says so", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(settings))
      const args = ["run", file, "--results-dir", join(folder, "results"), "--json", "--quiet"]
      const whole = resultOf(await effect(args))
      writeFileSync(join(whole.runDir, "checkpoints/latest/weights.safetensors"), "torn")
      const resumed = resultOf(await effect([...args, "--resume", whole.runDir]))
      assert.strictEqual(resumed.digest, whole.digest)
      assert.include(readFileSync(join(whole.runDir, "run.log"), "utf8"), "is damaged")
    }))
})

describe("a run that is finished", () => {
  it("is not done again when it is resumed, which is said, and goes on with more steps", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("totalSteps: 1024"))
      const first = resultOf(await effect(["run", file, "--results-dir", join(folder, "results"), "--quiet", "--json"]))
      const again = await effect(["run", file, "--resume", first.runDir])
      assert.strictEqual(again.code, 0, again.stderr)
      assert.match(
        again.stdout,
        /^this run is finished, and nothing has changed; train it further with a larger --total-steps .*\n1024/,
      )
      const further = await effect(["run", file, "--resume", first.runDir, "--total-steps", "2048"])
      assert.match(further.stdout, /^2048 steps/)
    }))
})
