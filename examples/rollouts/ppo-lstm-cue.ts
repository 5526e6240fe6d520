// Name the cue that was shown 8 steps ago: the standard test of a memory. Without `lstm`, PPO stays at a quarter.
//   npx effect run examples/rollouts/ppo-lstm-cue.ts --seed 1
//   npx effect run examples/rollouts/ppo-lstm-cue.ts --seed 1 --set env.delay=20
import { Ppo, RepeatCue, Train } from "effect-rl"

export default Train.run({
  env: RepeatCue.make({ delay: 8 }),
  numEnvs: 16,
  algorithm: Ppo.make({ lstm: 32, nsteps: 64, learningRate: 1e-3 }),
  totalSteps: 100_000,
  validation: { everySteps: 20_000, episodes: 100 },
})
