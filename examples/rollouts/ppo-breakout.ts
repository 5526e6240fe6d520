// PPO plays MinAtar's Breakout from its pixels.
//   npx effect run examples/rollouts/ppo-breakout.ts --seed 1
import { Breakout, Ppo, Train } from "effect-rl"

export default Train.run({
  env: Breakout.env,
  numEnvs: 32,
  algorithm: Ppo.make({ hidden: [128], learningRate: 1e-3, nsteps: 64, minibatches: 8 }),
  totalSteps: 2_000_000,
  validation: { everySteps: 250_000, episodes: 20 },
})
