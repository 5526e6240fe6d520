import { assert, describe, it } from "vitest"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import * as Acrobot from "../../../../src/rl/env/classic/Acrobot.ts"
import { follows, readTrace } from "../traces.ts"

const id = "Acrobot-v1"

describe(id, () => {
  it("follows Gymnasium's trajectories", () => {
    follows(readTrace<number>(id), Acrobot.dynamics)
  })

  it("ends when the free end is above the bar, with reward 0 for that step", () => {
    const up = Acrobot.dynamics([Math.PI, 0, 0, 0], 1)
    assert.strictEqual(up.terminated, true)
    assert.strictEqual(up.reward, 0)
    const down = Acrobot.dynamics([0, 0, 0, 0], 1)
    assert.strictEqual(down.terminated, false)
    assert.strictEqual(down.reward, -1)
  })

  it("keeps angles within ±π and velocities within ±4π and ±9π", () => {
    const { state } = Acrobot.dynamics([3.1, -3.1, 12.5, -28], 2)
    assert.isTrue(Math.abs(state[0]) <= Math.PI && Math.abs(state[1]) <= Math.PI)
    assert.isTrue(Math.abs(state[2]) <= 4 * Math.PI && Math.abs(state[3]) <= 9 * Math.PI)
  })

  it("starts within ±0.1 and is truncated at 500 steps", () => {
    const envs = Batch.make(Acrobot.env, 4)
    envs.reset(2)
    for (let index = 0; index < 4; index++) {
      assert.isTrue(Math.abs(envs.observations[6 * index + 4]) <= Math.fround(0.1))
      assert.isTrue(envs.observations[6 * index] >= Math.cos(0.1) - 1e-6)
    }
    for (let step = 1; step <= 500; step++) {
      assert.isFalse(envs.truncated.includes(1))
      envs.step(new Int32Array(4).fill(1))
    }
    assert.isFalse(envs.truncated.includes(0))
  })

  it("draws a state", () => {
    assert.include(Acrobot.env.renderText?.([0, 0, 0, 0]) ?? "", "◉")
    const text = Acrobot.env.renderText?.([0.5, -1.25, 2, -3]) ?? ""
    assert.include(text, "angles 0.50, -1.25   speeds 2.00, -3.00")
    assert.include(Acrobot.env.renderSvg?.([0, 0, 0, 0]) ?? "", "</svg>")
  })
})
