import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Bc from "../../../src/rl/algorithms/demonstrations/Bc.ts"
import * as Daac from "../../../src/rl/algorithms/rollouts/Daac.ts"
import * as Ddqn from "../../../src/rl/algorithms/rollouts/Ddqn.ts"
import * as Demonstrations from "../../../src/rl/learner/Demonstrations.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Es from "../../../src/rl/algorithms/episodes/Es.ts"
import * as Rnd from "../../../src/rl/algorithms/rollouts/Rnd.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Td3 from "../../../src/rl/algorithms/replay/Td3.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import * as TicTacToe from "../../../src/rl/env/games/TicTacToe.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Catch from "../../../src/rl/env/pixel/Catch.ts"
import { keep } from "../train/inMemory.ts"

/** A second or two each, far from what they can: `npm run prove` has the benchmarks. */

type Input = Parameters<typeof keep>[0]

const learns = (name: string, atLeast: number, input: Input): void => {
  it.effect(`${name}: at least ${atLeast}`, () =>
    Effect.gen(function* () {
      const { result } = yield* keep({ validation: { everySteps: input.totalSteps ?? 0, episodes: 20 }, ...input })
      assert.isAtLeast(result.validation?.meanReturn ?? -Infinity, atLeast)
    }),
  )
}

const shown = Demonstrations.record(CartPole.env, {
  episodes: 5,
  policy: ([at, speed, angle, spin]) => (0.02 * at + 0.05 * speed + angle + 0.25 * spin > 0 ? 1 : 0),
})

describe("in a moment, learns", () => {
  learns("A2C with a memory, a pole of which it sees all", 60, {
    env: CartPole.env,
    numEnvs: 16,
    algorithm: A2c.make({ lstm: 32, hidden: [32], nsteps: 16, lambda: 0.95, learningRate: 2e-3 }),
    normalize: { rewards: true },
    totalSteps: 100_000,
  })
  learns("double DQN, a pole", 100, {
    env: CartPole.env,
    numEnvs: 16,
    algorithm: Ddqn.make({ lambda: 0.9, nsteps: 16, epochs: 4, minibatches: 4, updateTargetFreq: 512 }),
    totalSteps: 150_000,
  })
  learns("DQN by priorities, a pole", 100, {
    env: CartPole.env,
    numEnvs: 4,
    algorithm: Dqn.make({ hidden: [64], prioritised: {}, nsteps: 3, dueling: true, explorationFraction: 0.5 }),
    totalSteps: 50_000,
  })
  learns("DAAC, a pole", 200, { env: CartPole.env, numEnvs: 16, algorithm: Daac.make(), totalSteps: 100_000 })
  learns("PPO in the graph, a pole", 200, {
    env: CartPole.env,
    numEnvs: 16,
    algorithm: Ppo.make({ rollouts: "graph", hidden: [32], nsteps: 64, learningRate: 2e-3 }),
    totalSteps: 100_000,
  })
  learns("RND, a pole", 150, {
    env: CartPole.env,
    numEnvs: 16,
    algorithm: Rnd.make({ learningRate: 1e-3 }),
    totalSteps: 60_000,
  })
  learns("evolution, a pole", 150, { env: CartPole.env, numEnvs: 32, algorithm: Es.make(), totalSteps: 200_000 })
  learns("behaviour cloning, a pole", 300, { env: CartPole.env, algorithm: Bc.make(shown), totalSteps: 40_000 })
  learns("SAC, a pendulum", -400, {
    env: Pendulum.env,
    numEnvs: 1,
    algorithm: Sac.make({ learningRate: 1e-3, batchSize: 100, learningStarts: 100 }),
    totalSteps: 5000,
  })
  learns("TD3, a pendulum", -900, {
    env: Pendulum.env,
    numEnvs: 1,
    algorithm: Td3.make({ batchSize: 64, learningStarts: 100 }),
    totalSteps: 8000,
  })
  learns("PPO from pixels, to catch", 0, {
    env: Catch.make({ stickiness: 0 }),
    numEnvs: 16,
    algorithm: Ppo.make({ hidden: [32], convolutions: [{ filters: 8, kernel: 3, stride: 2 }], learningRate: 3e-3 }),
    totalSteps: 250_000,
  })
  learns("PPO against itself, not to lose every game against who never does", -0.9, {
    env: TicTacToe.selfPlay,
    numEnvs: 64,
    algorithm: Ppo.make({
      gamma: -1,
      lambda: 1,
      convolutions: [],
      learningRate: 1e-3,
      nsteps: 32,
      minibatches: 8,
      entropyCoefficient: 0.1,
      clipValue: false,
    }),
    totalSteps: 600_000,
    validation: { everySteps: 600_000, episodes: 100, envs: [TicTacToe.optimal] },
  })
})
