// Rainbow: DQN with all of its improvements, which explores by noisy layers alone, balances a pole.
//   npx effect run examples/replay/rainbow-cartpole.ts --seed 1
import { CartPole, Dqn, Train } from "effect-rl"

export default Train.run({
  env: CartPole.env,
  numEnvs: 4,
  algorithm: Dqn.make({
    double: true,
    dueling: true,
    prioritised: {},
    nsteps: 5,
    distribution: { type: "categories", min: 0, max: 100 },
    noisy: true,
    epsilonStart: 0,
    epsilonEnd: 0,
    learningRate: 1e-3,
    gradientSteps: 2,
    updateTargetFreq: 100,
  }),
  totalSteps: 80_000,
  validation: { everySteps: 10_000, episodes: 20 },
})
