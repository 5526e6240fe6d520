import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { scoresOf } from "../crash.ts"
import { effect, program, resultOf, withFolder, write } from "../effect.ts"

const settings = "totalSteps: 8192, validation: { everySteps: 2000, episodes: 2 }, checkpoint: { everySteps: 1000 }"

describe("a run is the same run", () => {
  it("when it is done twice", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(settings))
      const args = ["run", file, "--results-dir", join(folder, "results"), "--json", "--quiet"]
      const [first, second] = [resultOf(await effect(args)), resultOf(await effect(args))]
      assert.strictEqual(first.digest, second.digest)
      assert.deepStrictEqual(scoresOf(first.runDir), scoresOf(second.runDir))
      assert.notStrictEqual(resultOf(await effect([...args, "--seed", "2"])).digest, first.digest)
    }),
  )

  it("when it is repeated from its own config.yaml", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(settings))
      const args = ["--results-dir", join(folder, "results"), "--json", "--quiet"]
      const first = resultOf(await effect(["run", file, ...args, "--seed", "3"]))
      const again = resultOf(await effect(["run", join(first.runDir, "config.yaml"), ...args]))
      assert.strictEqual(again.digest, first.digest)
    }),
  )

  it("when the newest checkpoint is damaged: the one before it is taken, and run.log says so", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(settings))
      const args = ["run", file, "--results-dir", join(folder, "results"), "--json", "--quiet"]
      const whole = resultOf(await effect(args))
      writeFileSync(join(whole.runDir, "checkpoints/latest/weights.safetensors"), "torn")
      const resumed = resultOf(await effect([...args, "--resume", whole.runDir]))
      assert.strictEqual(resumed.digest, whole.digest)
      assert.include(readFileSync(join(whole.runDir, "run.log"), "utf8"), "is damaged")
    }),
  )
})

describe("a run that is finished", () => {
  it("is not trained again when it is resumed, but is trained further with more steps", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("totalSteps: 1024"))
      const first = resultOf(await effect(["run", file, "--results-dir", join(folder, "results"), "--quiet", "--json"]))
      const again = await effect(["run", file, "--resume", first.runDir])
      assert.strictEqual(again.code, 0, again.stderr)
      assert.match(
        again.stdout,
        /^this run is finished, and nothing has changed; train it further with a larger --total-steps\n1024/,
      )
      const further = await effect(["run", file, "--resume", first.runDir, "--total-steps", "2048"])
      assert.match(further.stdout, /^2048 steps/)
      // The time is that of both processes, and the speed that of the last one, without its start.
      const metrics = JSON.parse(readFileSync(join(first.runDir, "metrics.json"), "utf8"))
      const { wall_seconds: wallSeconds, steps_per_second: speed } = metrics
      assert.include(further.stdout, `in ${wallSeconds.toFixed(1)} s (${Math.round(speed)} steps/s)`)
      assert.isAbove(speed, 1024 / wallSeconds)
    }))
})

describe("a run whose folder is named as the run of a trainer, and is next to a config", () => {
  it("is resumed itself if that config is not a trainer's", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("totalSteps: 1024"))
      const first = resultOf(await effect(["run", file, "--results-dir", join(folder, "results"), "--quiet", "--json"]))
      renameSync(first.runDir, join(folder, "run_x"))
      write(folder, "config.yaml", "total_steps: 512\n")
      for (const typed of ["run_x", "./run_x", join(folder, "run_x")]) {
        // A program beside a `config.yaml` may belong to somebody's run, so it is not run unasked.
        const again = await effect(["run", file, "--resume", typed, "--trust"], folder)
        assert.strictEqual(again.code, 0, again.stderr)
        assert.match(again.stdout, /^this run is finished, and nothing has changed;.*\n1024/)
      }
    }),
  )
})

describe("--resume latest of a program", () => {
  it("finds the runs by the name that the program sets, and offers --name when there is none", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program('name: "cartpole"'))
      const first = resultOf(await effect(["run", file, "--quiet", "--json"], folder))
      rmSync(join(folder, first.runDir, "return.json"))
      const resumed = resultOf(await effect(["run", file, "--resume", "latest", "--quiet", "--json"], folder))
      assert.strictEqual(resumed.runDir, first.runDir)
      rmSync(join(folder, first.runDir, "return.json"))
      const other = await effect(["run", write(folder, "other.ts", program("")), "--resume", "latest"], folder)
      assert.strictEqual(other.code, 2)
      assert.include(
        other.stderr,
        "--resume latest: there is no run named other in results; the newest unfinished one is",
      )
      assert.match(other.stderr, /; if that is a run of \S+other\.ts, add --name cartpole\n$/)
    }))

  it("mentions a newer unfinished run of another name, and resumes that one by its name", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("totalSteps: 1024"))
      const trained = async (...more: ReadonlyArray<string>): Promise<string> =>
        resultOf(await effect(["run", file, "--quiet", "--json", ...more], folder)).runDir
      const run = await trained()
      const other = await trained("--name", "other")
      // The time in the path says which run is newer.
      const newer = other.replace(/results\/[^/]*/, "results/2999-01-01_00-00-00")
      mkdirSync(dirname(join(folder, newer)), { recursive: true })
      renameSync(join(folder, other), join(folder, newer))
      const finished = await effect(["run", file, "--resume", "latest"], folder)
      assert.notInclude(finished.stderr, "note:")
      rmSync(join(folder, newer, "return.json"))
      const resumed = await effect(["run", file, "--resume", "latest"], folder)
      assert.include(
        resumed.stderr,
        `note: a newer unfinished run has another name: ${newer}; to resume that one, use --name other\nrun: ${run}\n`,
      )
      const byName = await effect(["run", file, "--resume", "latest", "--name", "other"], folder)
      assert.include(byName.stderr, `run: ${newer}\n`)
      assert.notInclude(byName.stderr, "note:")
    }),
  )
})
