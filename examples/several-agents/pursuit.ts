// Two hounds chase a hare on a grid and act at once. One policy plays both: a batch has a row for each hound. PPO learns to
// corner the hare, which flees from the nearest hound, and is caught only between the two of them.
//   npx effect run examples/several-agents/pursuit.ts --seed 1
import { MultiEnv, Ppo, Space, Train } from "effect-rl"

const size = 5
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
const distance = (a: Place, b: Place): number => Math.abs(a[0] - b[0]) + Math.abs(a[1] - b[1])

export const pursuit = MultiEnv.parallel({
  id: "pursuit",
  agents: ["first", "second"],
  observationSpace: Space.box(-1, 1, [6]),
  actionSpace: Space.discrete(5),
  maxSteps: 40,
  reset: (random) => ({
    hounds: [0, 1].map((): Place => [random.integer(size), random.integer(size)]),
    hare: [2, 2] as Place,
  }),
  // A hound sees itself first, then the other hound and the hare from its place.
  observe: ({ hounds, hare }, agent) => {
    const [me, other] = [hounds[agent], hounds[1 - agent]]
    const from = (place: Place) => [(place[0] - me[0]) / size, (place[1] - me[1]) / size]
    return [me[0] / size, me[1] / size, ...from(other), ...from(hare)]
  },
  step: ({ hounds, hare }, actions, random) => {
    const next = hounds.map((hound, agent) => moved(hound, actions[agent]))
    const isCaught = next.every((hound) => distance(hound, hare) <= 1)
    const nearest = (place: Place) => Math.min(...next.map((hound) => distance(hound, place)))
    const ways = moves.map((_, by) => moved(hare, by))
    const best = Math.max(...ways.map(nearest))
    const safe = ways.filter((place) => nearest(place) === best)
    const reward = isCaught ? 1 : -0.02
    const state = { hounds: next, hare: safe[random.integer(safe.length)] }
    return { state, rewards: [reward, reward], terminated: isCaught }
  },
})

export default Train.run({
  env: pursuit,
  numEnvs: 32,
  algorithm: Ppo.make({ nsteps: 64, minibatches: 8, learningRate: 1e-3 }),
  totalSteps: 200_000,
  validation: { everySteps: 50_000, episodes: 64, sampled: true },
})
