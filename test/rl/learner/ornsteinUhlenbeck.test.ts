import { assert, describe, it } from "@effect/vitest"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { box } from "../../../src/rl/env/Space.ts"
import { ornsteinUhlenbeck } from "../../../src/rl/learner/replay/ornsteinUhlenbeck.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

/** Each env ends an episode after as many steps as the number that it drew. */
const short = Env.make({
  id: "short",
  observationSpace: box(0, 1),
  actionSpace: box(0, 1),
  reset: (random) => 2 + random.integer(4),
  observe: () => [0],
  step: (left) => ({ state: left - 1, reward: 0, terminated: left === 1 }),
})

describe("noise by Ornstein and Uhlenbeck", () => {
  it("has the steps of Stable-Baselines3's formula", () => {
    const [process, random] = [ornsteinUhlenbeck(2, 2), stream(3, "test")]
    const expected = [0, 0, 0, 0]
    const normal = stream(3, "test")
    for (let step = 0; step < 50; step++) {
      process.step(random)
      for (const at of expected.keys())
        expected[at] = Math.fround(expected[at] + 0.15 * (0 - expected[at]) * 1e-2 + Math.sqrt(1e-2) * normal.normal())
      for (const [at, value] of process.values.entries()) assert.closeTo(value, expected[at], 1e-5)
    }
  })

  it("approaches the deviation of the process, √(1 / 2θ), and is correlated in time", { tags: "slow" }, () => {
    const process = ornsteinUhlenbeck(4000, 1)
    const random = stream(1, "test")
    for (let step = 0; step < 1500; step++) process.step(random)
    const before = process.values.slice()
    process.step(random)
    const deviation = Math.sqrt(before.reduce((sum, value) => sum + value ** 2, 0) / before.length)
    assert.closeTo(deviation, Math.sqrt(1 / 0.3) * Math.sqrt(1 - Math.exp(-2 * 0.15 * 15)), 0.08)
    assert.isTrue(process.values.every((value, at) => Math.abs(value - before[at]) < 0.6))
  })

  it("begins with 0 where an episode ended, and only there", () => {
    const envs = Batch.make(short, 8)
    envs.reset(1)
    const [process, random] = [ornsteinUhlenbeck(8, 3), stream(2, "test")]
    let ended = 0
    for (let step = 0; step < 12; step++) {
      process.step(random)
      envs.step(new Float32Array(8))
      const before = process.values.slice()
      process.afterStep(envs)
      for (let env = 0; env < 8; env++) {
        ended += envs.terminated[env]
        const row = (values: Float32Array) => Array.from(values.subarray(env * 3, env * 3 + 3))
        assert.deepEqual(row(process.values), envs.terminated[env] === 1 ? [0, 0, 0] : row(before))
      }
    }
    assert.isAbove(ended, 8)
  })
})
