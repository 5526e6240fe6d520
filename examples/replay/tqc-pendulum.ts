// TQC, which is SAC with critics that learn quantiles of the return, swings a pendulum up.
//   npx effect run examples/replay/tqc-pendulum.ts --seed 1
import { Pendulum, Tqc, Train } from "effect-rl"

export default Train.run({
  env: Pendulum.env,
  numEnvs: 1,
  algorithm: Tqc.make({ hidden: [64, 64], learningRate: 1e-3, learningStarts: 100 }),
  totalSteps: 15_000,
  validation: { everySteps: 5000, episodes: 20 },
})
