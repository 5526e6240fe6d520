/**
 * CartPole stepping alone, on one core: 1,024 envs with random actions, auto-reset, the time limit, and observations,
 * rewards and flags written. In env steps a second; the median of nine runs.
 */
import * as Batch from "../../src/env/Batch.ts"
import * as CartPole from "../../src/env/classic/CartPole.ts"
import { stream } from "../../src/rng/Rng.ts"

export const name = "cartpole-step"
export const unit = "env steps/s"

const numEnvs = 1024
const stepsARun = 3000

export const run = (): number => {
  const envs = Batch.make(CartPole.env, numEnvs)
  envs.reset(1, "bench")
  const random = stream(1, "bench", "actions")
  const actions = Array.from({ length: 64 }, () => Int32Array.from({ length: numEnvs }, () => random.integer(2)))
  const measure = (): number => {
    const start = performance.now()
    for (let step = 0; step < stepsARun; step++) envs.step(actions[step % actions.length])
    return (stepsARun * numEnvs * 1000) / (performance.now() - start)
  }
  // The first run is compiled on the way.
  measure()
  const rates = Array.from({ length: 9 }, measure).sort((a, b) => a - b)
  return rates[4]
}
