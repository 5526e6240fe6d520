// RANDAL in a maze of coloured pixels whose goal is so far away that about one episode in a hundred of random play finds it:
// UNREAL's tasks, and RND's bonus for what is new. The second command runs PPO without both, for comparison.
//   npx effect run examples/randal-maze.ts --seed 1
//   npx effect run examples/randal-maze.ts --seed 1 --config examples/plain-ppo.yaml
import { PixelMaze, Randal, Train } from "effect-rl"

export default Train.run({
  env: PixelMaze.make({ layoutSeed: 36, apples: 0, maxSteps: 35 }),
  numEnvs: 16,
  algorithm: Randal.make({
    learningRate: 1e-3,
    intrinsicCoefficient: 0.1,
    nsteps: 32,
    entropyCoefficient: 0.001,
    replaySteps: 10,
    initObsSteps: 100,
  }),
  totalSteps: 20_000,
  validation: { everySteps: 5_000, episodes: 100, sampled: true },
})
