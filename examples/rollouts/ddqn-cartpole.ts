// Synchronous double Q-learning without a replay buffer: λ-returns of short rollouts, a few passes over each.
//   npx effect run examples/rollouts/ddqn-cartpole.ts --seed 1
import { CartPole, Ddqn, Train } from "effect-rl"

export default Train.run({
  env: CartPole.env,
  numEnvs: 16,
  algorithm: Ddqn.make({
    lambda: 0.9,
    nsteps: 16,
    epochs: 4,
    minibatches: 4,
    updateTargetFreq: 2048,
    hidden: [128, 128],
    maxGradNorm: 10,
  }),
  totalSteps: 600_000,
  validation: { everySteps: 100_000, episodes: 20 },
})
