// A curious A2C: it is also paid for what it could not foresee.
//   npx effect run examples/rollouts/curiosity-cartpole.ts --seed 1
import { CartPole, Curiosity, Train } from "effect-rl"

export default Train.run({
  env: CartPole.env,
  numEnvs: 16,
  algorithm: Curiosity.make({ learningRate: 1e-3, nsteps: 16, lambda: 0.95 }),
  normalize: { rewards: true },
  totalSteps: 600_000,
  validation: { everySteps: 100_000, episodes: 20 },
})
