/**
 * Makes noise that is correlated over time, by the Ornstein-Uhlenbeck process, for algorithms that explore by adding
 * noise.
 */
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import type { Stream } from "../../../base/rng/Rng.ts"

/** The parameters θ (the pull to 0) and dt (the time of a step), as in Stable-Baselines3. */
const [pull, timeStep] = [0.15, 1e-2]

/**
 * Makes a process for each element of the actions of `numEnvs` envs, with the standard deviation 1 (Uhlenbeck and
 * Ornstein 1930; DDPG explores with such noise, arXiv:1509.02971): x ← x − θ x dt + √dt N(0, 1), with θ = 0.15 and dt =
 * 0.01. It begins with 0 in each episode.
 */
export const ornsteinUhlenbeck = (numEnvs: number, size: number) => {
  const values = new Float32Array(numEnvs * size)
  const spread = Math.sqrt(timeStep)
  return {
    /** The current values, one row for each env. */
    values,
    step: (random: Stream): void => {
      for (let at = 0; at < values.length; at++) values[at] += spread * random.normal() - pull * timeStep * values[at]
    },
    /** Sets the process of each env whose episode ended to 0. */
    afterStep: ({ terminated, truncated }: AnyBatchEnv): void => {
      for (let env = 0; env < numEnvs; env++)
        if ((terminated[env] | truncated[env]) !== 0) values.fill(0, env * size, (env + 1) * size)
    },
  }
}
