// TD3 swings a pendulum up.
//   npx effect run examples/replay/td3-pendulum.ts --seed 1
import { Pendulum, Td3, Train } from "effect-rl"

export default Train.run({
  env: Pendulum.env,
  numEnvs: 1,
  algorithm: Td3.make({ learningStarts: 100 }),
  totalSteps: 20_000,
  validation: { everySteps: 5000, episodes: 20 },
})
