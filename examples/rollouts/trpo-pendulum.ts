// Trust region policy optimisation of continuous actions: swing a pendulum up and hold it there.
//   npx effect run examples/rollouts/trpo-pendulum.ts --seed 1
import { Pendulum, Train, Trpo } from "effect-rl"

export default Train.run({
  env: Pendulum.env,
  numEnvs: 4,
  algorithm: Trpo.make({ nsteps: 1024, gamma: 0.9, maxKl: 0.03 }),
  normalize: { observations: true, rewards: true },
  totalSteps: 290_000,
  validation: { everySteps: 30_000, episodes: 20 },
  checkpoint: { everySteps: 100_000 },
})
