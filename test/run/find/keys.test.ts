import { assert, describe, it } from "vitest"
import { snakeCase } from "../../../src/base/config/plain.ts"
import { isKnownKey, knownKeys, type RunValues, unknownKey, valueIn } from "../../../src/run/find/keys.ts"
import { unplacedEntry } from "../../../src/run/find/RunEntry.ts"
import { RunResult, ValidationSummary } from "../../../src/run/RunResult.ts"
import { RuntimeResult } from "../../../src/agents/training/RuntimeResult.ts"

const run: RunValues = {
  entry: { ...unplacedEntry("results/a"), population: { num_envs: "8" } },
  facts: { state: "finished", steps: 100, validation: 475, best_validation: null },
  config: { name: "tune", seed: 7, env: "CartPole-v1", algorithm: { name: "ppo", learning_rate: 1e-3 }, target: null },
  metrics: { mean_return: 20, episodes: 12, mine: 3 },
}

describe("the value of a key", () => {
  const table = {
    state: "finished",
    validation: 475,
    best_validation: undefined,
    name: "tune",
    seed: 7,
    num_envs: 8,
    "population.num_envs": 8,
    algorithm: "ppo",
    "algorithm.learning_rate": 1e-3,
    "algorithm.learningRate": 1e-3,
    "config.algorithm.learning_rate": 1e-3,
    "metrics.algorithm.learning_rate": undefined,
    environment: "CartPole-v1",
    episodes: 12,
    mean_return: 20,
    mine: 3,
    target: null,
    gone: undefined,
  }
  for (const [key, expected] of Object.entries(table)) {
    it(`${key} is ${String(expected)}`, () => assert.strictEqual(valueIn(run, key), expected))
  }
})

describe("a key that no run has", () => {
  it("is named with the key that was probably meant", () => {
    assert.strictEqual(unknownKey("algoritm", knownKeys([run])), "no run has the key algoritm; did you mean algorithm?")
    assert.strictEqual(unknownKey("zzz", knownKeys([run])), "no run has the key zzz")
  })

  it("is no mistake where runs may lack it", () => {
    assert.isTrue(isKnownKey("validation", []))
    assert.isTrue(isKnownKey("meanReturn", []))
    assert.isTrue(isKnownKey("num_envs", [run.entry]))
    assert.isFalse(isKnownKey("algorithm.learning_rate", [run.entry]))
  })

  it("is none of the keys that results have", () => {
    const keys = [
      ...[...Object.keys(RunResult.fields), ...Object.keys(RuntimeResult.fields)].map(snakeCase),
      ...Object.keys(ValidationSummary.fields).map((key) => `validation.${snakeCase(key)}`),
    ].filter((key) => !["validation.episodes", "validation.agents"].includes(key))
    assert.deepStrictEqual(
      keys.filter((key) => !isKnownKey(key, [])),
      [],
    )
  })
})
