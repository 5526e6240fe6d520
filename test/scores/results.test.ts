import { mkdirSync } from "node:fs"
import { join } from "node:path"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  curveOf,
  readResults,
  readSettings,
  resultOf,
  scoreOf,
  writeResult,
  writeSettings,
} from "../../scripts/scores/ScoreResult.ts"
import { rows } from "../../scripts/scores/rows.ts"
import { collect } from "../../scripts/scores/training.ts"
import { effect, withFolder, write } from "../command/cli/effect.ts"

const facts = {
  trainer: "effect-rl",
  algorithm: "ppo",
  env: "CartPole-v1",
  seed: 1,
  steps: 1000,
  seconds: 1,
  cpu_seconds: 1,
  machine: "a machine",
  command: "npx effect run",
  version: "0".repeat(40),
  digest: "1".repeat(64),
} as const

const config = `env: CartPole-v1
num_envs: 2
total_steps: 512
algorithm: { name: ppo, nsteps: 64, hidden: [8] }
validation: { every_steps: 512, episodes: 3 }
`

describe("the result of a training", () => {
  it("by somebody else adds no HTML, links or cells to the page", async () => {
    await withFolder((folder) => {
      const result = resultOf(facts, [{ step: 1000, value: 1 }], [1])
      for (const key of ["machine", "command", "version", "digest"]) {
        for (const text of ["<img src=x>", "a | b", "[a](b)", "a`b", "a\nb"]) {
          writeResult(folder, { ...result, [key]: text })
          assert.throws(() => readResults(folder), new RegExp(`1\\.json.*${key}`, "s"))
        }
      }
      return Promise.resolve()
    })
  })

  it("has the mean returns of a hundred equal parts of the training", () => {
    const episodes = Array.from({ length: 500 }, (_, index) => ({ step: 2 * (index + 1), value: index }))
    const { curve, training, evaluation, episodes: count } = resultOf(facts, episodes, [1, 2, 6])
    assert.deepStrictEqual(curve.slice(0, 2), [{ step: 10, value: 2 }, { step: 20, value: 7 }]) // prettier-ignore
    assert.deepStrictEqual([curve.length, training, count], [100, 449.5, 500])
    assert.strictEqual(scoreOf({ ...facts, curve, training, evaluation, episodes: count }), 3)
  })

  it("has no more than a hundred points, in the order of their steps, whose values lie among the returns", () => {
    const episode = fc.record({ step: fc.integer({ min: 1, max: 5000 }), value: fc.integer({ min: -9, max: 9 }) })
    fc.assert(
      fc.property(fc.array(episode, { maxLength: 300 }), fc.integer({ min: 100, max: 4000 }), (episodes, steps) => {
        const curve = curveOf(episodes, steps)
        assert.isAtMost(curve.length, 100)
        assert.strictEqual(curve.length === 0, episodes.length === 0)
        for (const [index, { step, value }] of curve.entries()) {
          assert.isTrue(step > (curve[index - 1]?.step ?? 0) && step <= steps)
          assert.isTrue(Math.abs(value) <= 9)
        }
      }),
    )
  })

  it("of a training without an episode is refused, with its command", () => {
    assert.throws(() => resultOf(facts, [], [1]), /npx effect run: expected episodes/)
  })

  it("is made of the folder of a finished run, once", () =>
    withFolder(async (folder) => {
      const row = { ...rows[0], algorithm: "ppo", env: "CartPole-v1", steps: 512, seeds: 2 }
      const [results, work] = [join(folder, "results"), join(folder, "work")]
      const file = write(folder, "train.yaml", config)
      const place = ["--results-dir", join(work, "ppo/CartPole-v1"), "--quiet"]
      const { code, stderr } = await effect(["run", file, "--seeds", "1,2", "--jobs", "1", ...place])
      assert.strictEqual(code, 0, stderr)
      assert.deepStrictEqual(collect(row, results, work, [1]), [1])
      assert.deepStrictEqual(collect(row, results, work, [2]), [2])
      const [first, second] = readResults(results)
      assert.deepStrictEqual([first.seed, second.seed, first.steps, first.evaluation.length], [1, 2, 512, 3])
      assert.match(first.digest ?? "", /^[0-9a-f]{64}$/)
      assert.notStrictEqual(first.digest, second.digest)
      assert.isAbove(first.curve.length, 1)
      // A training of half a second can have less than the 0.05 s that are rounded to 0.1.
      assert.isAtLeast(first.cpu_seconds, 0)
      const settings = JSON.stringify(readSettings(results, row))
      assert.include(settings, `"hidden":[8]`)

      writeSettings(results, row, JSON.parse(settings.replace("[8]", "[4]")))
      assert.throws(() => collect(row, results, work, [2]), /ppo\/CartPole-v1: seed 2 has other settings/)
    }))

  it("is read again, also that of an env whose name has a slash", () =>
    withFolder(async (folder) => {
      const result = resultOf({ ...facts, env: "MinAtar/Breakout-v1" }, [{ step: 1, value: 0.123456789 }], [1])
      writeResult(folder, result)
      writeSettings(folder, result, { gamma: 0.9 })
      assert.deepStrictEqual(readResults(folder), [result])
      assert.deepStrictEqual(readSettings(folder, result), { gamma: 0.9 })
    }))

  it("that is damaged is named by its file", () =>
    withFolder(async (folder) => {
      mkdirSync(join(folder, "effect-rl/ppo/CartPole-v1"), { recursive: true })
      write(folder, "effect-rl/ppo/CartPole-v1/1.json", JSON.stringify({ ...facts, trainer: "nobody" }))
      assert.throws(() => readResults(folder), /CartPole-v1\/1\.json: .*trainer/s)
    }))
})
