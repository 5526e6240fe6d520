// Four rooms, three keys, one point at the very end: play at random gets there once in two thousand times. RND is paid for
// what is new on the way; the second line is the same without that pay, to compare.
//   npx effect run examples/rnd-keydoor.ts --seed 1
//   npx effect run examples/rnd-keydoor.ts --seed 1 --set algorithm.intrinsic_coefficient=0
import { KeyDoor, Rnd, Train } from "effect-rl"

export default Train.run({
  env: KeyDoor.make({ size: 12, rooms: 4, layoutSeed: 1, maxSteps: 200 }),
  numEnvs: 32,
  algorithm: Rnd.make({ hidden: [128], learningRate: 5e-4, minibatches: 8, predictionShare: 0.25 }),
  totalSteps: 500_000,
  // A policy that is never in doubt would walk into the same wall for ever, until it has learnt the way.
  validation: { everySteps: 100_000, episodes: 20, sampled: true },
})
