import { assert, describe, it } from "vitest"
import * as Rng from "../../../src/base/rng/Rng.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import { qNetwork, recurrentQNetwork } from "../../../src/rl/model/qNetwork.ts"

const options = {
  observationSpace: CartPole.env.observationSpace,
  actions: 2,
  dueling: true,
  hidden: [16],
  activation: "relu",
  convolutions: null,
  network: null,
  lstm: 8,
} as const

describe("the first weights of a Q-network", () => {
  for (const network of [qNetwork, recurrentQNetwork]) {
    it(`are orthogonal, or as PyTorch draws them (${network.name})`, () => {
      const drawn = (orthogonal?: boolean) => {
        const { parameters } = network({ ...options, ...(orthogonal === undefined ? {} : { orthogonal }) })
        const random = Rng.stream(1, "weights")
        return Object.fromEntries(
          Object.entries(parameters).map(([name, { init, shape }]) => [name, Array.from(init(random, shape))]),
        )
      }
      const layer = ["q.0.weight", "q.0.bias"] as const
      const uniform = drawn(false)
      for (const name of layer) {
        // A uniform number within ±1/√4, of the four numbers of an observation.
        assert.isBelow(Math.max(...uniform[name].map(Math.abs)), 0.5)
        assert.isAbove(Math.max(...uniform[name].map(Math.abs)), 0.4)
      }
      const { "q.0.weight": weight, "q.0.bias": bias } = drawn()
      assert.isTrue(bias.every((value) => value === 0))
      // The four rows of the weights have the length √2.
      for (let row = 0; row < 4; row++) {
        assert.closeTo(Math.hypot(...weight.slice(16 * row, 16 * row + 16)), Math.SQRT2, 1e-6)
      }
      assert.deepEqual(drawn(true), drawn())
    })
  }
})
