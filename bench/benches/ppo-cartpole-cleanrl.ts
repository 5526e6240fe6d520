import { CartPole, Ppo } from "effect-rl"
import { defineBench } from "../Bench.ts"
import { measureTraining } from "../training.ts"

export default defineBench({
  name: "ppo-cartpole-cleanrl",
  unit: "steps/s",
  higherIsBetter: true,
  about:
    "PPO on CartPole with CleanRL's settings: 4 envs × 128 steps, 4 epochs × 4 minibatches, 64-64 tanh, 500,000 steps",
  run: () => measureTraining({ env: CartPole.env, numEnvs: 4, algorithm: Ppo.make(), totalSteps: 500_000 }),
})
