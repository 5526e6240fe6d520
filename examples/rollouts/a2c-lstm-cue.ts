// Name the cue that was shown 8 steps ago. A rollout must be longer than the delay, so that a gradient reaches the cue.
//   npx effect run examples/rollouts/a2c-lstm-cue.ts --seed 1
//   npx effect run examples/rollouts/a2c-lstm-cue.ts --seed 1 --set env.delay=20 --set total_steps=250000 \
//     --set algorithm.nsteps=32 --set algorithm.forget_bias=4
import { A2c, RepeatCue, Train } from "effect-rl"

export default Train.run({
  env: RepeatCue.make({ delay: 8 }),
  numEnvs: 16,
  algorithm: A2c.make({ lstm: 32, nsteps: 16, lambda: 0.95, learningRate: 3e-3 }),
  totalSteps: 100_000,
  validation: { everySteps: 20_000, episodes: 100 },
})
