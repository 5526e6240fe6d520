import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { highest } from "../../../src/base/statistics/extremes.ts"
import * as CrossQ from "../../../src/rl/algorithms/replay/CrossQ.ts"
import * as Ddpg from "../../../src/rl/algorithms/replay/Ddpg.ts"
import * as DiscreteSac from "../../../src/rl/algorithms/replay/DiscreteSac.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Td3 from "../../../src/rl/algorithms/replay/Td3.ts"
import * as Tqc from "../../../src/rl/algorithms/replay/Tqc.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import { keep, tensorsOf } from "../train/inMemory.ts"

/** The algorithms with a replay buffer, with small networks; their trainings here end before they learn. */
const algorithms = [
  { env: CartPole.env, make: Dqn.make, name: "DQN" },
  {
    env: CartPole.env,
    make: (options: Dqn.DqnOptions) => Dqn.make({ ...options, lstm: 4 }),
    name: "DQN with a memory",
  },
  { env: CartPole.env, make: DiscreteSac.make, name: "discrete SAC" },
  { env: Pendulum.env, make: Sac.make, name: "SAC" },
  { env: Pendulum.env, make: Td3.make, name: "TD3" },
  { env: Pendulum.env, make: Ddpg.make, name: "DDPG" },
  { env: Pendulum.env, make: Tqc.make, name: "TQC" },
  {
    env: Pendulum.env,
    make: (options: CrossQ.CrossQOptions) => CrossQ.make({ ...options, criticHidden: [16] }),
    name: "CrossQ",
  },
]

describe("the first weights of an algorithm with a replay buffer", () => {
  it.effect.each(algorithms)("are orthogonal, or as PyTorch draws them ($name)", ({ env, make }) =>
    Effect.gen(function* () {
      const drawn = (options: { readonly orthogonal?: boolean }) => {
        const algorithm = make({ ...options, hidden: [16], bufferSize: 100, batchSize: 4, learningStarts: 8 })
        return Effect.map(keep({ env, numEnvs: 1, algorithm, totalSteps: 4 }), tensorsOf)
      }
      const uniform = yield* drawn({ orthogonal: false })
      const orthogonal = yield* drawn({})
      const linear = Object.keys(uniform).filter((name) => uniform[name.replace(/bias$/, "weight")] !== undefined)
      const biases = linear.filter((name) => name.endsWith(".bias"))
      assert.isAtLeast(biases.length, 2)
      for (const bias of biases) {
        const weight = bias.replace(/bias$/, "weight")
        const [inputs] = uniform[weight].shape
        for (const name of [weight, bias]) {
          const largest = highest(Array.from(uniform[name].data, Math.abs))
          assert.isAtMost(largest, 1 / Math.sqrt(inputs), name)
          assert.isAbove(largest, 0, name)
        }
        assert.isTrue(
          orthogonal[bias].data.every((value) => value === 0),
          bias,
        )
      }
      assert.deepEqual(yield* drawn({ orthogonal: true }), orthogonal)
    }),
  )
})
