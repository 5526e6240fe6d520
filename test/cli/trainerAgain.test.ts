import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { assert, describe, it } from "vitest"
import { configOf, runConfig } from "../multirun/smallTraining.ts"
import { effect, resultOf, withFolder, write } from "./effect.ts"

const usual = ["--backend", "wasm", "--json", "--quiet"]

describe("a trainer whose orchestrators worked outside of it, by the names of its folders", () => {
  it("is replayed by a trainer that plays the tasks itself, and resumed from its folder by a run's name", () =>
    withFolder(async (folder) => {
      const config = { ...configOf({ a: runConfig(1, { max_steps: 2 }) }), broadcast: { keep: 1 } }
      const file = write(folder, "small.yaml", JSON.stringify(config))
      const outcome = await effect(["run", file, "--results-dir", join(folder, "results"), ...usual])
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      const { runDir, digest } = resultOf(outcome)
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
      assert.isFalse(existsSync(join(runDir, "run_a/run_a")))
      assert.strictEqual(readFileSync(join(runDir, "run_a/control/finished"), "utf8").trim(), "3")
    }))
})
