// Trust region policy optimisation: a step size that needs no tuning.
//   npx effect run examples/rollouts/trpo-cartpole.ts --seed 1
import { CartPole, Train, Trpo } from "effect-rl"

export default Train.run({
  env: CartPole.env,
  numEnvs: 8,
  algorithm: Trpo.make({ nsteps: 128 }),
  totalSteps: 100_000,
  validation: { everySteps: 10_000, episodes: 20 },
  checkpoint: { everySteps: 20_000, strategy: { _tag: "TopKValidation", keep: 3 } },
})
