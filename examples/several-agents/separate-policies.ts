// A wolf hunts a sheep on a grid, and both learn at the same time: each has a policy, networks and settings of its own.
//   npx effect run examples/several-agents/separate-policies.ts --seed 1
import { MultiEnv, Ppo, Separate, Space, Train } from "effect-rl"

const size = 6
const moves = [
  [0, 0],
  [0, 1],
  [0, -1],
  [1, 0],
  [-1, 0],
]
type Place = ReadonlyArray<number>

const moved = ([x, y]: Place, by: number): Place => [
  Math.min(size - 1, Math.max(0, x + moves[by][0])),
  Math.min(size - 1, Math.max(0, y + moves[by][1])),
]

export const hunt = MultiEnv.parallel({
  id: "hunt",
  agents: ["wolf", "sheep"],
  observationSpace: Space.box(-1, 1, [4]),
  actionSpace: Space.discrete(5),
  maxSteps: 30,
  reset: (random): ReadonlyArray<Place> => [
    [0, 0],
    [1 + random.integer(size - 1), 1 + random.integer(size - 1)],
  ],
  // Each sees where it is, and the other one from there.
  observe: (places, agent) => {
    const [me, other] = [places[agent], places[1 - agent]]
    return [me[0] / size, me[1] / size, (other[0] - me[0]) / size, (other[1] - me[1]) / size]
  },
  step: ([wolf, sheep], [chase, flight], random) => {
    // The sheep stumbles in every fifth step or so.
    const next = [moved(wolf, chase), random.uniform() < 0.2 ? sheep : moved(sheep, flight)]
    const isCaught = next[0].every((number, axis) => number === next[1][axis])
    return { state: next, rewards: isCaught ? [1, -1] : [-0.02, 0.02], terminated: isCaught }
  },
})

export default Train.run({
  env: hunt,
  numEnvs: 32,
  algorithm: Separate.make({
    wolf: Ppo.make({ nsteps: 64, minibatches: 4, learningRate: 1e-3 }),
    sheep: Ppo.make({ nsteps: 64, minibatches: 4, learningRate: 1e-3, entropyCoefficient: 0.03 }),
  }),
  totalSteps: 400_000,
  validation: { everySteps: 100_000, episodes: 64, sampled: true },
})
