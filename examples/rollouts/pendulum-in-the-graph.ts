// Swing up 64 pendulums at once; rollouts and updates stay inside of two compiled programs.
//   npx effect run examples/rollouts/pendulum-in-the-graph.ts --seed 1
import { Pendulum, Ppo, Train } from "effect-rl"

export default Train.run({
  env: Pendulum.env,
  numEnvs: 64,
  algorithm: Ppo.make({
    rollouts: "graph",
    nsteps: 64,
    epochs: 10,
    minibatches: 16,
    learningRate: 1e-3,
    gamma: 0.9,
    entropyCoefficient: 0,
    clipValue: false,
    valueCoefficient: 0.02,
  }),
  totalSteps: 500_000,
  validation: { everySteps: 100_000, episodes: 20 },
  checkpoint: { everySteps: 250_000 },
})
