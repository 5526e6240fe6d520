// Five rooms, four keys, and one reward at the very end, which random play never reaches. RND adds a bonus for new
// observations on the way; the second command runs without the bonus, for comparison.
//   npx effect run examples/rollouts/rnd-keydoor.ts --seed 1
//   npx effect run examples/rollouts/rnd-keydoor.ts --seed 1 --set algorithm.intrinsic_coefficient=0
import { KeyDoor, Rnd, Train } from "effect-rl"

export default Train.run({
  env: KeyDoor.make({ size: 11, rooms: 5, layoutSeed: 1, maxSteps: 150 }),
  numEnvs: 16,
  algorithm: Rnd.make({
    convolutions: [{ filters: 16, kernel: 3, stride: 2 }],
    hidden: [128],
    learningRate: 5e-4,
    nsteps: 64,
    predictionShare: 0.5,
    entropyCoefficient: 0.001,
    initObsSteps: 150,
  }),
  totalSteps: 200_000,
  // A policy that is never in doubt would walk into the same wall for ever, until it has learnt the way.
  validation: { everySteps: 50_000, episodes: 20, sampled: true },
})
