// The hill of ppo-mountaincar.ts with SAC, which holds its noise, too.
//   npx effect run examples/replay/sac-mountaincar.ts --seed 1
import { MountainCarContinuous, Sac, Train } from "effect-rl"

export default Train.run({
  env: MountainCarContinuous.env,
  numEnvs: 1,
  algorithm: Sac.make({
    learningRate: 5e-4,
    batchSize: 128,
    gamma: 0.999,
    learningStarts: 2000,
    trainEvery: 8,
    gradientSteps: 8,
    noiseRepeat: 16,
  }),
  totalSteps: 24_000,
  validation: { everySteps: 4000, episodes: 20 },
})
