// CrossQ swings a pendulum up without target networks, by critics with batch renormalisation.
//   npx effect run examples/replay/crossq-pendulum.ts --seed 1
import { CrossQ, Pendulum, Train } from "effect-rl"

export default Train.run({
  env: Pendulum.env,
  numEnvs: 1,
  algorithm: CrossQ.make({ policyDelay: 2, hidden: [64, 64], criticHidden: [128, 128], learningStarts: 100 }),
  totalSteps: 10_000,
  validation: { everySteps: 2500, episodes: 20 },
})
