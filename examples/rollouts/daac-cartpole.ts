// DAAC: the policy learns in one pass over a rollout, the critic in nine.
//   npx effect run examples/rollouts/daac-cartpole.ts --seed 1
import { CartPole, Daac, Train } from "effect-rl"

export default Train.run({
  env: CartPole.env,
  numEnvs: 16,
  algorithm: Daac.make(),
  totalSteps: 200_000,
  validation: { everySteps: 50_000, episodes: 20 },
})
