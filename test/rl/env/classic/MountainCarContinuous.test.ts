import { assert, describe, it } from "vitest"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import * as MountainCarContinuous from "../../../../src/rl/env/classic/MountainCarContinuous.ts"
import { follows, readTrace } from "../traces.ts"

const id = "MountainCarContinuous-v0"

describe(id, () => {
  it("follows Gymnasium's trajectories", () => {
    follows(readTrace<ReadonlyArray<number>>(id), MountainCarContinuous.dynamics)
  })

  it("clips the force to 1, but not in the cost", () => {
    const strong = MountainCarContinuous.dynamics([-0.5, 0], [3])
    const full = MountainCarContinuous.dynamics([-0.5, 0], [1])
    assert.deepEqual(strong.state, full.state)
    assert.approximately(strong.reward, -0.9, 1e-12)
    assert.approximately(full.reward, -0.1, 1e-12)
  })

  it("gives 100 at the flag", () => {
    const moved = MountainCarContinuous.dynamics([0.44, 0.05], [0])
    assert.strictEqual(moved.terminated, true)
    assert.strictEqual(moved.reward, 100)
  })

  it("is truncated at 999 steps", () => {
    const envs = Batch.make(MountainCarContinuous.env, 1)
    envs.reset(5)
    for (let step = 1; step <= 999; step++) {
      assert.strictEqual(envs.truncated[0], 0)
      envs.step(new Float32Array(1))
    }
    assert.strictEqual(envs.truncated[0], 1)
  })

  it("draws a state", () => {
    assert.include(MountainCarContinuous.env.renderText?.([-0.5, 0]) ?? "", "●")
    assert.include(MountainCarContinuous.env.renderSvg?.([-0.5, 0]) ?? "", "</svg>")
  })
})
