// Swing a pendulum up and hold it there: continuous actions, observations and rewards normalised as it goes.
//   npx effect run examples/pendulum.ts --seed 1
import { Pendulum, Ppo, Train } from "effect-rl"

export default Train.run({
  env: Pendulum.env,
  numEnvs: 4,
  algorithm: Ppo.make({
    learningRate: 5e-4,
    nsteps: 1024,
    epochs: 10,
    minibatches: 32,
    gamma: 0.9,
    entropyCoefficient: 0,
    clipValue: false,
  }),
  normalize: { observations: true, rewards: true },
  totalSteps: 290_000,
  validation: { everySteps: 30_000, episodes: 20 },
  checkpoint: { everySteps: 100_000 },
})
