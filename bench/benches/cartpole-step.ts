import { Batch, CartPole, Rng } from "effect-rl"
import { defineBench } from "../Bench.ts"

const numEnvs = 1024

export default defineBench({
  name: "cartpole-step",
  unit: "steps/s",
  higherIsBetter: true,
  about: "CartPole stepping alone: 1,024 envs with random actions, auto-reset, time limit, everything written",
  run: async ({ time }) => {
    const envs = Batch.make(CartPole.env, numEnvs)
    envs.reset(1, "bench")
    const random = Rng.stream(1, "bench", "actions")
    const actions = Array.from({ length: 64 }, () => Int32Array.from({ length: numEnvs }, () => random.integer(2)))
    let step = 0
    return { value: numEnvs / time(() => envs.step(actions[step++ % actions.length]), { minimumSeconds: 2 }).seconds }
  },
})
