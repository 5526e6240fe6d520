// PPO lands Gymnasium's lunar lander, which Python processes step. It needs: python3 -m pip install "gymnasium[box2d]"
//   npx effect run examples/lunar-lander.ts --seed 1
import { Ppo, Train } from "effect-rl"
import { Gymnasium } from "effect-rl/node"

export default Train.run({
  env: Gymnasium.env("LunarLander-v3", { processes: 2, python: process.env.EFFECT_RL_PYTHON ?? "python3" }),
  numEnvs: 16,
  algorithm: Ppo.make({
    learningRate: 3e-4,
    nsteps: 1024,
    minibatches: 256,
    epochs: 4,
    gamma: 0.999,
    lambda: 0.98,
    entropyCoefficient: 0.01,
    clipValue: false,
    hidden: [64, 64],
  }),
  totalSteps: 1_000_000,
  validation: { everySteps: 100_000, episodes: 20 },
  stopAtReturn: 230,
})
