import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { assert, describe, it } from "vitest"
import { configOf, runConfig } from "../../trainer/smallTraining.ts"
import { effect, resultOf, withFolder, write } from "./effect.ts"

const usual = ["--backend", "wasm", "--json", "--quiet"]

describe("a trainer whose orchestrators worked outside of it, by the names of its folders", () => {
  it(
    "is replayed by a trainer that plays the tasks itself, and resumed from its folder by a run's name",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        const config = { ...configOf({ a: runConfig(1, { max_steps: 2 }) }), broadcast: { keep: 1 } }
        const file = write(folder, "small.yaml", JSON.stringify(config))
        const outcome = await effect(["run", file, "--results-dir", join(folder, "results"), ...usual])
        assert.strictEqual(outcome.code, 0, outcome.stderr)
        const { runDir, digest, wallSeconds } = resultOf(outcome)
        const saved = join(runDir, "config.yaml")
        const inside = readFileSync(saved, "utf8")
        assert.include(inside, "orchestrators: inside")
        // The weights do not depend on it, so this is the folder that other processes would have left.
        writeFileSync(saved, inside.replace("orchestrators: inside", "orchestrators: outside"))
        const replayed = await effect(["replay", runDir, ...usual])
        assert.strictEqual(replayed.code, 0, replayed.stderr)
        const { same, digest: digests } = JSON.parse(replayed.stdout)
        assert.deepStrictEqual([same, digests], [true, { then: digest, now: digest }])

        writeFileSync(saved, inside)
        const more = ["--set", "runs.a.max_steps=3"]
        const resumed = await effect(["run", file, "--resume", "run_a", ...more, ...usual], runDir)
        assert.strictEqual(resumed.code, 0, resumed.stderr)
        assert.strictEqual(resolve(runDir, resultOf(resumed).runDir), resolve(runDir))
        const { steps, stepsPerSecond, wallSeconds: inAll } = resultOf(resumed)
        assert.strictEqual(steps, 3)
        // The speed does not count the start of the process.
        const here = 1 / Number(stepsPerSecond)
        assert.isAbove(Number(inAll), Number(wallSeconds) + here, "the time of both processes")
        assert.isFalse(existsSync(join(runDir, "run_a/run_a")))
        assert.strictEqual(readFileSync(join(runDir, "run_a/control/finished"), "utf8").trim(), "3")

        const problem =
          "max_steps: the run has done 3 steps already; expected at least as many, found 2; to go back, set"
        const shorter = ["--set", "runs.a.max_steps=2"]
        const refused = await effect(["run", file, "--resume", runDir, ...shorter, ...usual])
        assert.strictEqual(refused.code, 2, refused.stderr)
        assert.include(refused.stderr, `effect: --set: runs.a.${problem}`)
        const nowhere = await effect([
          "run",
          file,
          "--resume",
          runDir,
          ...more,
          "--set",
          "runs.a.resume_step=7",
          ...usual,
        ])
        assert.strictEqual(nowhere.code, 2, nowhere.stderr)
        assert.match(
          nowhere.stderr,
          /effect: --set: runs\.a\.resume_step: expected the step of a complete checkpoint .*found 7/,
        )
        assert.isTrue(existsSync(join(runDir, "metrics.json")), "a finished trainer stays as it was")
        const orchestrator = join(runDir, "run_a/configs/orch.yaml")
        const edited = readFileSync(orchestrator, "utf8")
        assert.include(edited, "max_steps: 3", "the refused config was not written")
        writeFileSync(orchestrator, edited.replace("max_steps: 3", "max_steps: 2"))
        const again = await effect(["run", file, "--resume", runDir, ...more, ...usual])
        assert.strictEqual(again.code, 1)
        assert.include(again.stderr, problem)
        assert.include(readFileSync(join(runDir, "run_a/configs/config_validation_error.txt"), "utf8"), problem)
        const back = await effect([
          "run",
          file,
          "--resume",
          runDir,
          ...shorter,
          "--set",
          "runs.a.resume_step=0",
          ...usual,
        ])
        assert.strictEqual(back.code, 0, back.stderr)
      }),
  )
})
