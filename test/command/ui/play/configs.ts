/** Configs of short trainings as the page "Play" makes them: one for each of its envs. */
import { Effect } from "effect"
import * as Train from "../../../../src/rl/train/Train.ts"
import * as Web from "../../../../src/web.ts"

const rest = `seed: 2
total_steps: 1024
num_envs: 4
algorithm:
  name: ppo
  learning_rate: 0.001
  nsteps: 32
`

export const configs = {
  CartPole: `env: CartPole-v1\n${rest}`,
  Pendulum: `env: Pendulum-v1\n${rest}normalize:\n  observations: true\n  rewards: true\n`,
  HalfCheetah: `env: HalfCheetah-v5\n${rest}`,
  GridWorld: `env:\n  name: GridWorld\n  size: 6\n  density: 0.1\n${rest}`,
}

/** Trains in Node by a parsed config, without the page, and returns the digest. */
export const digestInNode = async (config: unknown): Promise<string> => {
  const { digest } = await Effect.runPromise(Effect.provide(Train.fromConfig(config), Web.layer))
  return digest
}
