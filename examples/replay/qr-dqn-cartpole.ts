// QR-DQN, which learns the distribution of returns by quantiles, balances a pole.
//   npx effect run examples/replay/qr-dqn-cartpole.ts --seed 1
import { CartPole, Dqn, Train } from "effect-rl"

export default Train.run({
  env: CartPole.env,
  numEnvs: 4,
  algorithm: Dqn.make({
    distribution: { type: "quantiles", count: 16 },
    double: true,
    nsteps: 10,
    learningRate: 1e-3,
    gradientSteps: 2,
    updateTargetFreq: 100,
    epsilonEnd: 0.02,
    schedule: "linear",
  }),
  totalSteps: 50_000,
  validation: { everySteps: 10_000, episodes: 20 },
})
