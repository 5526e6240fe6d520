import { assert, describe, it } from "vitest"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import * as CartPole from "../../../../src/rl/env/classic/CartPole.ts"
import { follows, readTrace } from "../traces.ts"

const id = "CartPole-v1"

describe(id, () => {
  it("follows Gymnasium's trajectories", () => {
    follows(readTrace<number>(id), CartPole.dynamics)
  })

  it("has Gymnasium's spaces and limits", () => {
    assert.deepEqual(CartPole.env.actionSpace, { _tag: "Discrete", n: 2 })
    assert.deepEqual(
      CartPole.env.observationSpace.high.map(Math.fround),
      [4.8, Infinity, 0.41887903213500977, Infinity].map(Math.fround),
    )
    assert.strictEqual(CartPole.env.maxSteps, 500)
    assert.strictEqual(CartPole.env.rewardThreshold, 475)
  })

  it("starts within ±0.05 and gives reward 1 per step until the pole falls", () => {
    const envs = Batch.make(CartPole.env, 50)
    envs.reset(3)
    assert.isTrue(envs.observations.every((value) => Math.abs(value) <= 0.05))
    assert.isAbove(new Set(envs.observations).size, 190)
    let steps = 0
    do {
      envs.step(new Int32Array(50))
      steps++
      assert.isTrue(envs.rewards.every((reward) => reward === 1))
    } while (envs.terminated[0] === 0 && steps < 20)
    // Pushed one way only, it falls within about ten steps.
    assert.isAtMost(steps, 11)
    assert.isAtLeast(steps, 7)
  })

  it("draws a state", () => {
    const text = CartPole.env.renderText?.([0, 0, 0, 0]) ?? ""
    const middle = text.split("\n").map((line) => line.charAt(30))
    assert.includeMembers(middle, ["•", "█", "─"])
    assert.include(CartPole.env.renderSvg?.([0, 0, 0.1, 0]) ?? "", "<title>CartPole-v1</title>")
  })
})
