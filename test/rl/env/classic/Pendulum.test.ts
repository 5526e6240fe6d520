import { assert, describe, it } from "vitest"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import * as Pendulum from "../../../../src/rl/env/classic/Pendulum.ts"
import { follows, readTrace } from "../traces.ts"

const id = "Pendulum-v1"

describe(id, () => {
  it("follows Gymnasium's trajectories", () => {
    follows(readTrace<ReadonlyArray<number>>(id), Pendulum.dynamics, 1e-9)
  })

  it("gives exactly Gymnasium's reward for Gymnasium's state", () => {
    for (const episode of readTrace<ReadonlyArray<number>>(id)) {
      const before = [episode.initialState, ...episode.states]
      for (const [step, action] of episode.actions.entries()) {
        assert.strictEqual(Pendulum.dynamics(before[step], action).reward, episode.rewards[step])
      }
    }
  })

  it("clips the torque to 2, also in the cost", () => {
    assert.deepEqual(Pendulum.dynamics([1, 0], [100]), Pendulum.dynamics([1, 0], [2]))
    assert.approximately(Pendulum.dynamics([0, 0], [-50]).reward, -0.004, 1e-15)
  })

  it("measures the angle within ±π after any number of turns", () => {
    const turn = 2 * Math.PI
    for (const turns of [-3, -2, -1, 1, 2, 3, 40]) {
      assert.approximately(Pendulum.dynamics([0.5 + turns * turn, 0], [0]).reward, -0.25, 1e-12)
    }
    assert.approximately(Pendulum.dynamics([Math.PI + 0.1, 0], [0]).reward, -((Math.PI - 0.1) ** 2), 1e-12)
  })

  it("never terminates, and is truncated at 200 steps", () => {
    const envs = Batch.make(Pendulum.env, 2)
    envs.reset(1)
    for (let step = 1; step <= 400; step++) {
      envs.step(new Float32Array(2))
      assert.deepEqual([...envs.truncated], step % 200 === 0 ? [1, 1] : [0, 0])
      assert.deepEqual([...envs.terminated], [0, 0])
    }
  })

  it("draws a state", () => {
    assert.include(Pendulum.env.renderText?.([0, 0]) ?? "", "◉")
    assert.include(Pendulum.env.renderSvg?.([0, 0]) ?? "", "</svg>")
  })
})
