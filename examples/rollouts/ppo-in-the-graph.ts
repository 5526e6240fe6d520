// Play whole rollouts inside of the compiled program: 1,024 poles at once, none of whose steps passes through JavaScript.
//   npx effect run examples/rollouts/ppo-in-the-graph.ts --seed 1
//   npx effect run examples/rollouts/ppo-in-the-graph.ts --backend cuda
import { CartPole, Ppo, Train } from "effect-rl"

export default Train.run({
  env: CartPole.env,
  numEnvs: 1024,
  algorithm: Ppo.make({
    rollouts: "graph",
    nsteps: 64,
    epochs: 4,
    minibatches: 16,
    hidden: [32, 32],
    learningRate: 2e-3,
    entropyCoefficient: 0,
    clipValue: false,
  }),
  totalSteps: 1_500_000,
  validation: { everySteps: 500_000, episodes: 20 },
  checkpoint: { everySteps: 500_000 },
})
