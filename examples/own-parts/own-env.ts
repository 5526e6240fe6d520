// An env of your own: a boat on a river must reach the quay against a current that changes from episode to episode.
//   npx effect run examples/own-parts/own-env.ts
import { Env, Ppo, Space, Train } from "effect-rl"

const river = Env.make({
  id: "river",
  observationSpace: Space.box([-2, -1, -0.1], [2, 1, 0.1]),
  actionSpace: Space.discrete(3),
  maxSteps: 100,
  reset: (random) => ({ at: random.between(-1, 1), speed: 0, current: random.between(-0.05, 0.05) }),
  observe: ({ at, speed, current }) => [at, speed, current],
  step: ({ at, speed, current }, action) => {
    const next = { at: at + 0.2 * speed, speed: 0.9 * speed + 0.1 * (action - 1) + current, current }
    const moored = Math.abs(next.at) < 0.05 && Math.abs(next.speed) < 0.1
    const lost = Math.abs(next.at) > 2
    return { state: next, reward: moored ? 10 : lost ? -10 : -0.1, terminated: moored || lost }
  },
})

export default Train.run({
  env: river,
  algorithm: Ppo.make({ learningRate: 1e-3 }),
  totalSteps: 100_000,
  validation: { everySteps: 20_000, episodes: 20 },
})
