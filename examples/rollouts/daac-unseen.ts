// DAAC on levels that it has never seen. A level has a look, which is 16 random numbers, and a price of each step. The value of
// an observation depends on the look, but the best action only on the way to the goal. A network that actor and critic share
// learns the looks of the five training levels, and acts worse on others. The second command runs PPO with such a network.
//   npx effect run examples/rollouts/daac-unseen.ts --seed 1
//   npx effect run examples/rollouts/daac-unseen.ts --seed 1 --config examples/rollouts/shared-ppo.yaml
import { Daac, Env, Rng, Space, Train } from "effect-rl"

const half = 4

/** Makes the level with this number: its look, and the price of a step, from 0 to 0.3. */
const level = (number: number) => {
  const random = Rng.stream(7, "level", number)
  return { look: Array.from({ length: 16 }, () => random.between(-2, 2)), price: random.between(0, 0.3) }
}

/** Makes an env with levels of its own, of which each episode draws one. `reward` gives a step's reward. */
const rooms = (id: string, first: number, count: number, reward: (price: number, arrived: boolean) => number) => {
  const levels = Array.from({ length: count }, (_, index) => level(first + index))
  const within = (at: number): number => Math.max(-half, Math.min(half, at))
  return Env.make({
    id,
    observationSpace: Space.box(-2, 2, [18]),
    actionSpace: Space.discrete(4),
    maxSteps: 20,
    reset: (random) => {
      const place = () => random.integer(2 * half + 1) - half
      return { level: random.integer(count), x: place(), y: place() }
    },
    // The goal is at 0, 0.
    observe: ({ level, x, y }) => [x / half, y / half, ...levels[level].look],
    step: ({ level, x, y }, action) => {
      const next = { level, x: within(x + [1, -1, 0, 0][action]), y: within(y + [0, 0, 1, -1][action]) }
      const arrived = next.x === 0 && next.y === 0
      return { state: next, reward: reward(levels[level].price, arrived), terminated: arrived }
    },
  })
}

export default Train.run({
  env: rooms("rooms", 0, 5, (price) => -price),
  numEnvs: 16,
  algorithm: Daac.make({
    learningRate: 1e-3,
    nsteps: 64,
    minibatches: 8,
    epochs: 4,
    gamma: 0.95,
    entropyCoefficient: 0.01,
  }),
  totalSteps: 30_000,
  // The score is the share of 400 unseen levels in which the policy reaches the goal.
  validation: {
    everySteps: 30_000,
    episodes: 400,
    envs: [rooms("unseen-rooms", 100, 400, (_, arrived) => (arrived ? 1 : 0))],
  },
})
