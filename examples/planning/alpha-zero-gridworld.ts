// AlphaZero for one player: it finds the ways on maps that it has never seen by searching them.
//   npx effect run examples/planning/alpha-zero-gridworld.ts --seed 1
import { AlphaZero, GridWorld, Train } from "effect-rl"

export default Train.run({
  env: GridWorld.make({ size: 6 }),
  numEnvs: 32,
  algorithm: AlphaZero.make({
    gamma: 0.95,
    lambda: 0.5,
    hidden: [128],
    simulations: 48,
    nsteps: 8,
    window: 24,
    updates: 32,
    noiseAlpha: 1,
  }),
  totalSteps: 24_000,
  validation: { everySteps: 6_000, episodes: 100 },
})
