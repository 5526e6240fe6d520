// A2C balances a pole.
//   npx effect run examples/rollouts/a2c-cartpole.ts --seed 1
import { A2c, CartPole, Train } from "effect-rl"

export default Train.run({
  env: CartPole.env,
  numEnvs: 16,
  algorithm: A2c.make({ learningRate: 1e-3, nsteps: 16, lambda: 0.95 }),
  normalize: { rewards: true },
  totalSteps: 600_000,
  validation: { everySteps: 100_000, episodes: 20 },
})
