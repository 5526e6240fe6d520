// Evolution strategies: no gradient, 32 variations a generation. What everything else should beat.
//   npx effect run examples/rollouts/es-cartpole.ts --seed 1
import { CartPole, Es, Train } from "effect-rl"

export default Train.run({
  env: CartPole.env,
  numEnvs: 32,
  algorithm: Es.make(),
  totalSteps: 500_000,
  validation: { everySteps: 100_000, episodes: 20 },
})
