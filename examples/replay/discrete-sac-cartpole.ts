// SAC for choices, whose policy is rewarded for its entropy, balances a pole.
//   npx effect run examples/replay/discrete-sac-cartpole.ts --seed 1
import { CartPole, DiscreteSac, Train } from "effect-rl"

export default Train.run({
  env: CartPole.env,
  numEnvs: 1,
  algorithm: DiscreteSac.make(),
  totalSteps: 30_000,
  validation: { everySteps: 10_000, episodes: 20 },
})
