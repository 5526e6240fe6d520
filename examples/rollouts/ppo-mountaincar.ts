// A car too weak for the hill: actions are held for eight steps at a time, or it would never find out that swinging helps.
//   npx effect run examples/rollouts/ppo-mountaincar.ts --seed 1
import { MountainCarContinuous, Ppo, Train } from "effect-rl"

export default Train.run({
  env: MountainCarContinuous.env,
  numEnvs: 16,
  algorithm: Ppo.make({
    learningRate: 1e-3,
    nsteps: 256,
    minibatches: 16,
    epochs: 10,
    gamma: 0.999,
    entropyCoefficient: 0,
    clipValue: false,
    noiseRepeat: 8,
  }),
  totalSteps: 300_000,
  validation: { everySteps: 50_000, episodes: 20 },
})
