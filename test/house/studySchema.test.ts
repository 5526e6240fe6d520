import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { readStudy } from "../../src/command/tune/StudySettings.ts"
import { root } from "../command/cli/effect.ts"
import { validator } from "./validators.ts"

const full = `
metric: mean_validation
direction: minimize
trials: 60
seed: 2
seeds: 3
parallel: 8
sampler: { name: tpe, startup: 5, candidates: 10, gamma: 0.2, prior_weight: 2, multivariate: true }
pruner: { name: none, min_steps: 100, reduction: 2, warmup: 3 }
parameters:
  algorithm.learning_rate: { log_uniform: [1.0e-5, 0.01] }
  algorithm:
    lambda: { uniform: [0.8, 1], step: 0.05 }
    hidden: { choice: [[64], [64, 64]] }
  num_envs: { log_int: [4, 64], when: { algorithm.hidden: [[64]] } }
`

/** Tells whether the library accepts the file of a study. */
const isTaken = (value: unknown): boolean =>
  Effect.runSync(Effect.isSuccess(readStudy(value, { source: "space.yaml" })))

describe("schemas/study.schema.json", () => {
  const problem = validator("study.schema.json")

  it("takes a file with every key, as the library does", () => {
    const value: unknown = parse(full)
    assert.isTrue(isTaken(value))
    assert.isUndefined(problem(value))
  })

  it("takes the file in docs/tuning.md and the example", () => {
    const [, shown = ""] = /```yaml\n([^]*?)```/.exec(readFileSync(join(root, "docs/tuning.md"), "utf8")) ?? []
    for (const text of [shown, readFileSync(join(root, "examples/rollouts/ppo-acrobot.space.yaml"), "utf8")]) {
      const value: unknown = parse(text)
      assert.isTrue(isTaken(value))
      assert.isUndefined(problem(value))
    }
  })

  it.each([
    "trials: 3",
    "trails: 3\nparameters: { a: { int: [1, 2] } }",
    "sampler: { name: grid }\nparameters: { a: { int: [1, 2] } }",
    "parameters: { a: 3 }",
    "parameters: { a: { unifrom: [1, 2] } }",
    "parameters: { a: { int: one } }",
  ])("refuses what the library refuses: %j", (text) => {
    const value: unknown = parse(text)
    assert.isFalse(isTaken(value))
    assert.isDefined(problem(value))
  })
})
