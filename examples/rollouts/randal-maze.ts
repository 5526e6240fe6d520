// RANDAL in a maze of coloured pixels whose goal is so far away that random play hardly ever finds it: UNREAL's tasks, and
// RND's bonus for what is new. The second command runs PPO without both, for comparison.
//   npx effect run examples/rollouts/randal-maze.ts --seed 1
//   npx effect run examples/rollouts/randal-maze.ts --seed 1 --config examples/rollouts/plain-ppo.yaml
import { PixelMaze, Randal, Train } from "effect-rl"

export default Train.run({
  env: PixelMaze.make({ layoutSeed: 36, apples: 0, maxSteps: 25 }),
  numEnvs: 16,
  algorithm: Randal.make({
    learningRate: 1e-3,
    nsteps: 32,
    entropyCoefficient: 0.001,
    replaySteps: 10,
    initObsSteps: 100,
  }),
  totalSteps: 60_000,
  validation: { everySteps: 10_000, episodes: 100, sampled: true },
})
