// A pole whose speeds can't be seen: PPO with a memory finds them out by itself.
//   npx effect run examples/ppo-lstm-cartpole.ts --seed 1
import { CartPole, Ppo, Train, Wrapper } from "effect-rl"

export default Train.run({
  env: Wrapper.keepObservations(CartPole.env, [0, 2]),
  numEnvs: 8,
  algorithm: Ppo.make({
    lstm: 64,
    hidden: [64],
    sequence: 16,
    learningRate: 1e-3,
    entropyCoefficient: 0,
    clipValue: false,
  }),
  normalize: { observations: true, rewards: true },
  totalSteps: 200_000,
  validation: { everySteps: 50_000, episodes: 20 },
})
