// DQN with hindsight experience replay turns 12 bits into a goal, one bit a step. Without it, no reward is ever seen.
//   npx effect run examples/replay/bit-flip.ts --seed 1
import { BitFlip, Dqn, Train } from "effect-rl"

export default Train.run({
  env: BitFlip.make({ bits: 12 }),
  numEnvs: 4,
  algorithm: Dqn.make({ her: {}, gamma: 0.95, learningRate: 1e-3, batchSize: 128, epsilonEnd: 0.02 }),
  totalSteps: 60_000,
  validation: { everySteps: 10_000, episodes: 100 },
})
