import { assert, describe, it } from "vitest"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import * as MountainCar from "../../../../src/rl/env/classic/MountainCar.ts"
import { follows, readTrace } from "../traces.ts"

const id = "MountainCar-v0"

describe(id, () => {
  it("follows Gymnasium's trajectories", () => {
    follows(readTrace<number>(id), MountainCar.dynamics)
  })

  it("stops dead at the left wall", () => {
    assert.deepEqual(MountainCar.dynamics([-1.19, -0.05], 0).state, [-1.2, 0])
  })

  it("ends at the flag, with reward −1 per step", () => {
    assert.deepEqual(MountainCar.dynamics([0.49, 0.05], 2).terminated, true)
    assert.deepEqual(MountainCar.dynamics([0.49, 0.05], 2).reward, -1)
  })

  it("starts at rest between -0.6 and -0.4 and is truncated at 200 steps", () => {
    const envs = Batch.make(MountainCar.env, 20)
    envs.reset(5)
    for (let index = 0; index < 20; index++) {
      assert.isTrue(
        envs.observations[2 * index] >= Math.fround(-0.6) && envs.observations[2 * index] <= Math.fround(-0.4),
      )
      assert.strictEqual(envs.observations[2 * index + 1], 0)
    }
    for (let step = 1; step <= 200; step++) {
      assert.isFalse(envs.truncated.includes(1))
      envs.step(new Int32Array(20).fill(1))
    }
    assert.isFalse(envs.truncated.includes(0))
  })

  it("draws a state", () => {
    assert.include(MountainCar.env.renderText?.([-0.5, 0]) ?? "", "●")
    assert.include(MountainCar.env.renderSvg?.([-0.5, 0]) ?? "", "</svg>")
  })
})
