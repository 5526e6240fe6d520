// The main job: balance a pole, from nothing to solved in a second or two.
//   npx effect run examples/cartpole.ts --seed 1
import { CartPole, Ppo, Train } from "effect-rl"

export default Train.run({
  env: CartPole.env,
  numEnvs: 8,
  algorithm: Ppo.make({ learningRate: 1e-3, nsteps: 64, epochs: 10, entropyCoefficient: 0, clipValue: false }),
  totalSteps: 100_000,
  validation: { everySteps: 10_000, episodes: 20 },
  checkpoint: { everySteps: 20_000, strategy: { _tag: "TopKValidation", keep: 3 } },
})
