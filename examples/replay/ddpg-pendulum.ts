// DDPG swings a pendulum up.
//   npx effect run examples/replay/ddpg-pendulum.ts --seed 1
import { Ddpg, Pendulum, Train } from "effect-rl"

export default Train.run({
  env: Pendulum.env,
  numEnvs: 1,
  algorithm: Ddpg.make({ learningStarts: 100 }),
  totalSteps: 20_000,
  validation: { everySteps: 5000, episodes: 20 },
})
