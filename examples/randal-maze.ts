// RANDAL in the same maze: UNREAL's tasks, and RND's pay for what is new.
//   npx effect run examples/randal-maze.ts --seed 1
import { PixelMaze, Randal, Train } from "effect-rl"

export default Train.run({
  env: PixelMaze.make({ layoutSeed: 1, apples: 0, maxSteps: 35 }),
  numEnvs: 16,
  algorithm: Randal.make({ learningRate: 1e-3, intrinsicCoefficient: 0.1, nsteps: 32, entropyCoefficient: 0.001 }),
  totalSteps: 40_000,
  validation: { everySteps: 10_000, episodes: 100, sampled: true },
})
