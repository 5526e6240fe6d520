// PPO lands Gymnasium's lunar lander, which Python processes step. It needs: python3 -m pip install "gymnasium[box2d]"
//   npx effect run examples/foreign-envs/lunar-lander.ts --seed 1
import { Ppo, Train } from "effect-rl"
import { Gymnasium } from "effect-rl/node"

export default Train.run({
  env: Gymnasium.env("LunarLander-v3", { processes: 2, python: process.env.EFFECT_RL_PYTHON ?? "python3" }),
  numEnvs: 16,
  algorithm: Ppo.make({
    learningRate: 5e-4,
    nsteps: 512,
    minibatches: 64,
    epochs: 5,
    gamma: 0.995,
    lambda: 0.97,
    clipValue: false,
  }),
  // Returns are in the hundreds, and a critic learns numbers of that size slowly.
  normalize: { rewards: true },
  totalSteps: 1_500_000,
  validation: { everySteps: 100_000, episodes: 50 },
  stopAtReturn: 230,
})
