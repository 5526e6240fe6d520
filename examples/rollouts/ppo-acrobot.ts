// PPO swings an acrobot up.
//   npx effect run examples/rollouts/ppo-acrobot.ts --seed 1
import { Acrobot, Ppo, Train } from "effect-rl"

export default Train.run({
  env: Acrobot.env,
  numEnvs: 16,
  algorithm: Ppo.make({ learningRate: 1e-3 }),
  totalSteps: 400_000,
  validation: { everySteps: 100_000, episodes: 20 },
})
