import { existsSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { runsIn, scoresOf } from "../cli/crash.ts"
import { effect, isTraining, program, resultOf, start, until, withFolder, write } from "../cli/effect.ts"
import { digestsOf, finished, left, logOf } from "./sweeps.ts"

const tiny = program("totalSteps: 512, checkpoint: { everySteps: 128 }")
const long = program("totalSteps: 80_000, checkpoint: { everySteps: 0 }")

/** Tells whether all processes of a group have ended. */
const isGone = (group: number): boolean => {
  try {
    return !process.kill(group, 0)
  } catch {
    return true
  }
}

describe("a sweep is the same sweep", () => {
  it("when all its processes are killed twice and it is resumed: every run is trained once", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", tiny)
      const args = [
        "run",
        file,
        "--population",
        "algorithm.learning_rate=1e-3,1e-4",
        "num_envs=4,8",
        "--seeds",
        "1..2",
        "--jobs",
        "2",
      ]
      const [whole, killed] = [join(folder, "whole"), join(folder, "killed")]
      const uninterrupted = await effect([...args, "--results-dir", whole, "--json"])
      assert.strictEqual(uninterrupted.code, 0, uninterrupted.stderr)

      const written = new Map<string, number>()
      for (const enough of [2, 4]) {
        const resume = enough === 2 ? [] : ["--resume", "latest"]
        const { child, ended } = start([...args, "--results-dir", killed, ...resume], undefined, { detached: true })
        assert.isDefined(child.pid)
        const group = child.pid
        await until(() => finished(killed).length >= enough)
        process.kill(-group, "SIGKILL")
        assert.strictEqual((await ended).signal, "SIGKILL")
        await until(() => isGone(-group))
        assert.isBelow(finished(killed).length, 8)
        for (const run of finished(killed)) written.set(run, statSync(join(run, "return.json")).mtimeMs)
      }
      const outcome = await effect([...args, "--results-dir", killed, "--resume", "latest", "--json"])
      assert.strictEqual(outcome.code, 0, outcome.stderr)

      assert.strictEqual(finished(killed).length, 8)
      assert.deepEqual(digestsOf(killed), digestsOf(whole))
      for (const [run, at] of written) assert.strictEqual(statSync(join(run, "return.json")).mtimeMs, at)
      const wholeRuns = left(whole)
      for (const [key, run] of left(killed)) assert.deepEqual(scoresOf(run), scoresOf(wholeRuns.get(key) ?? ""))
      const scores = ({ stdout }: { readonly stdout: string }): unknown =>
        JSON.parse(stdout, (key, value) => (key === "wallSeconds" ? undefined : value))
      assert.deepEqual(scores(outcome), scores(uninterrupted))
    }))

  it("when Ctrl-C stops it: all runs are saved, the command to resume is printed, and only one process can resume it", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", long)
      const args = ["run", file, "--population", "num_envs=4,8", 'name="a b"', "--seeds", "1..2"]
      const [whole, stopped] = [join(folder, "whole"), join(folder, "stopped")]
      assert.strictEqual((await effect([...args, "--results-dir", whole])).code, 0)
      const sweep = [...args, "--jobs", "3", "--results-dir", stopped]
      const { child, ended } = start(sweep, undefined, { detached: true })
      const signal = (name: NodeJS.Signals): boolean => child.pid !== undefined && process.kill(-child.pid, name)
      await until(() => runsIn(stopped).filter(isTraining).length === 3)
      // Nothing is trained while the other process starts: no run may be finished before it is stopped.
      signal("SIGSTOP")
      const other = await start([...args, "--results-dir", stopped, "--resume", "latest"]).ended
      assert.strictEqual(other.code, 1)
      assert.match(other.stderr, /sweep\.lock: process \d+ on .* is writing/)
      child.kill("SIGINT")
      signal("SIGCONT")
      const { code, stderr } = await ended
      assert.strictEqual(code, 130, stderr)
      assert.lengthOf(stderr.match(/resume with: /g) ?? [], 1)
      const unfinished = runsIn(stopped).filter((run) => !existsSync(join(run, "return.json")))
      assert.isNotEmpty(unfinished)
      for (const run of unfinished) {
        assert.include(logOf(run), "interrupted at step")
        assert.isTrue(existsSync(join(run, "checkpoints/latest/manifest.json")))
      }

      const [, command] = /resume with: npx effect (.*)\n/.exec(stderr) ?? []
      const words = command.match(/'[^']*'|\S+/g)?.map((word) => word.replace(/^'(.*)'$/, "$1")) ?? []
      const outcome = await effect(words)
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      assert.deepEqual(digestsOf(stopped), digestsOf(whole))
    }))

  it.skipIf(process.platform === "win32")("when its runs are looked at in between, all by one SIGUSR1", () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      const args = ["run", write(folder, "train.ts", long), "--seeds", "1..2", "--jobs", "2", "--results-dir", results]
      const { child, ended } = start(args)
      await until(() => runsIn(results).filter(isTraining).length === 2)
      child.kill("SIGUSR1")
      const { code, stderr } = await ended
      assert.strictEqual(code, 0, stderr)
      for (const run of runsIn(results)) assert.lengthOf(readdirSync(join(run, "steps")), 1)
    }),
  )

  it("when it is killed and its runs are not: they save and end by themselves", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", long)
      const results = join(folder, "results")
      const args = ["run", file, "--seeds", "1..2", "--jobs", "2", "--results-dir", results, "--json"]
      const { child, ended } = start(args)
      await until(() => runsIn(results).filter(isTraining).length === 2)
      child.kill("SIGKILL")
      await ended
      await until(() => runsIn(results).every((run) => !existsSync(join(run, "run.lock"))))
      for (const run of runsIn(results)) assert.include(logOf(run), "interrupted at step")
      const outcome = await effect([...args, "--resume", "latest"])
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      const whole = await effect(["run", file, "--seed", "2", "--results-dir", join(folder, "whole"), "--json"])
      assert.strictEqual(JSON.parse(outcome.stdout).seeds[1].digest, resultOf(whole).digest)
    }))
})

describe("a sweep with runs that end oddly", () => {
  it("continues when one run fails, and fails at the end", () =>
    withFolder(async (folder) => {
      const file = write(
        folder,
        "train.ts",
        program("").replace("CartPole.env,", 'process.argv.includes("2") ? "Nowhere-v0" : CartPole.env,'),
      )
      const outcome = await start(["run", file, "--seeds", "1..3", "--results-dir", join(folder, "results"), "--json"])
        .ended
      assert.strictEqual(outcome.code, 1)
      assert.include(outcome.stderr, "1 of 3 seeds failed")
      const { seeds, score } = JSON.parse(outcome.stdout)
      assert.include(seeds[1].failed, 'unknown env "Nowhere-v0"')
      assert.strictEqual(score.runs, 2)
    }))

  it("counts one that ends without a result as failed, however it ends", () =>
    withFolder(async (folder) => {
      const odd = [
        'if (process.argv.includes("1")) { console.log("bye"); process.exit(0) }',
        'if (process.argv.includes("2")) process.kill(process.pid, "SIGKILL")',
      ]
      const file = write(folder, "train.ts", `${program("")}${odd.join("\n")}\n`)
      const outcome = await start(["run", file, "--seeds", "1..3", "--results-dir", join(folder, "results"), "--json"])
        .ended
      assert.strictEqual(outcome.code, 1, outcome.stderr)
      const { seeds, score } = JSON.parse(outcome.stdout)
      assert.isNotEmpty(seeds[0].failed)
      assert.strictEqual(seeds[1].failed, "ended by SIGKILL")
      assert.strictEqual(score.runs, 1)
    }))
})
