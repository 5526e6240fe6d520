// SAC swings a pendulum up in a few thousand steps, with an update for each of them.
//   npx effect run examples/replay/sac-pendulum.ts --seed 1
import { Pendulum, Sac, Train } from "effect-rl"

export default Train.run({
  env: Pendulum.env,
  numEnvs: 1,
  algorithm: Sac.make({ learningRate: 1e-3, batchSize: 100, learningStarts: 100 }),
  totalSteps: 20_000,
  validation: { everySteps: 5000, episodes: 20 },
})
