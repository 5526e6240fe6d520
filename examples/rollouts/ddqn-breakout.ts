// Double Q-learning with λ-returns plays MinAtar's Breakout from its pixels.
//   npx effect run examples/rollouts/ddqn-breakout.ts --seed 1
import { Breakout, Ddqn, Train } from "effect-rl"

export default Train.run({
  env: Breakout.env,
  numEnvs: 32,
  algorithm: Ddqn.make({
    hidden: [128],
    learningRate: 5e-4,
    nsteps: 32,
    lambda: 0.65,
    epochs: 2,
    minibatches: 16,
    epsilonEnd: 0.02,
    updateTargetFreq: 1024,
  }),
  totalSteps: 2_000_000,
  validation: { everySteps: 250_000, episodes: 20 },
})
