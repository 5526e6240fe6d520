// Observations with parts (a map and a list of numbers), and a mask that forbids walking off the map.
//   npx effect run examples/own-parts/spaces.ts
import { Env, Ppo, Space, Train } from "effect-rl"

const size = 4
const moves = [-size, size, -1, 1]

const courier = Env.make({
  id: "Courier",
  observationSpace: Space.dict({ map: Space.box(0, 1, [3, size, size]), letter: Space.box(0, 1, [2]) }),
  actionSpace: Space.discrete(4),
  maxSteps: 30,
  reset: (random) => {
    const [at, ...places] = random.permutation(new Int32Array(size * size))
    return { at, houses: places.slice(0, 2), letter: random.integer(2) }
  },
  // The map shows the courier and both houses; the letter says to which of them it must be brought.
  observe: ({ at, houses, letter }) => {
    const map = new Float32Array(3 * size * size)
    for (const [plane, place] of [at, ...houses].entries()) map[plane * size * size + place] = 1
    return { map, letter: [1 - letter, letter] }
  },
  actionMask: ({ at }) => [at >= size, at < size * (size - 1), at % size > 0, at % size < size - 1],
  step: ({ at, houses, letter }, action) => {
    const next = at + moves[action]
    const reached = houses.indexOf(next)
    const reward = reached === letter ? 1 : reached < 0 ? -0.02 : -1
    return { state: { at: next, houses, letter }, reward, terminated: reached >= 0 }
  },
})

export default Train.run({
  env: courier,
  numEnvs: 16,
  algorithm: Ppo.make({ learningRate: 1e-3, schedule: "linear", gamma: 0.95, entropyCoefficient: 0.01 }),
  totalSteps: 300_000,
  validation: { everySteps: 50_000, episodes: 50 },
})
