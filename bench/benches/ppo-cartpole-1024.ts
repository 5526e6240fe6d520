import { CartPole, Ppo } from "effect-rl"
import { defineBench } from "../Bench.ts"
import { measureTraining } from "../training.ts"

export default [
  defineBench({
    name: "ppo-cartpole-1024",
    unit: "steps/s",
    higherIsBetter: true,
    about: "PPO on CartPole with 1,024 envs × 32 steps, one epoch of 16 minibatches of 2,048, 32-32, 5,000,000 steps",
    run: () =>
      measureTraining({
        env: CartPole.env,
        numEnvs: 1024,
        algorithm: Ppo.make({ nsteps: 32, epochs: 1, minibatches: 16, hidden: [32, 32], learningRate: 2e-3 }),
        totalSteps: 5_000_000,
      }),
  }),
  defineBench({
    name: "ppo-cartpole-1024-128",
    unit: "steps/s",
    higherIsBetter: true,
    about: "PPO on CartPole with 1,024 envs × 128 steps, 4 epochs × 4 minibatches, 64-64 tanh, 1,310,720 steps",
    run: () => measureTraining({ env: CartPole.env, numEnvs: 1024, algorithm: Ppo.make(), totalSteps: 1_310_720 }, 1),
  }),
]
