// A corridor of 40 doors with the only reward behind the last, which steps at random hardly ever reach. A curious A2C is paid
// for transitions that it cannot foresee yet; the second command runs A2C without the bonus.
//   npx effect run examples/rollouts/curiosity-corridor.ts --seed 1
//   npx effect run examples/rollouts/curiosity-corridor.ts --seed 1 --set algorithm.curiosity_coefficient=0
import { Curiosity, Env, Space, Train } from "effect-rl"

const doors = 40

const corridor = Env.make({
  id: "Corridor",
  observationSpace: Space.discrete(doors),
  actionSpace: Space.discrete(2),
  maxSteps: 2 * doors,
  reset: () => ({ at: 0 }),
  observe: ({ at }) => at,
  // One handle of each door leads on and the other one back; which is which alternates from door to door.
  step: ({ at }, action) => {
    const next = Math.max(0, at + (action === at % 2 ? 1 : -1))
    const found = next === doors - 1
    return { state: { at: next }, reward: found ? 10 : 0, terminated: found }
  },
})

export default Train.run({
  env: corridor,
  numEnvs: 16,
  algorithm: Curiosity.make({
    curiosityCoefficient: 10,
    learningRate: 2e-3,
    schedule: "constant",
    nsteps: 8,
    lambda: 0.95,
    entropyCoefficient: 0.003,
    hidden: [64],
  }),
  totalSteps: 200_000,
  validation: { everySteps: 50_000, episodes: 50, sampled: true },
})
