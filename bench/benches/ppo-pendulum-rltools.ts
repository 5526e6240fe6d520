import { Pendulum, Ppo } from "effect-rl"
import { defineBench } from "../Bench.ts"
import { measureTraining } from "../training.ts"

export default defineBench({
  name: "ppo-pendulum-rltools",
  unit: "steps/s",
  higherIsBetter: true,
  about:
    "PPO on Pendulum with RLtools' settings: 4 envs × 1,024 steps, minibatches of 256, 2 epochs, 64-64, 303,104 steps",
  run: () =>
    measureTraining({
      env: Pendulum.env,
      numEnvs: 4,
      algorithm: Ppo.make({
        nsteps: 1024,
        epochs: 2,
        minibatches: 16,
        gamma: 0.9,
        entropyCoefficient: 0,
        learningRate: 1e-3,
        activation: "relu",
      }),
      normalize: { observations: true, rewards: true },
      totalSteps: 303_104,
    }),
})
