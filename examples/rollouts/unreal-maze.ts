// UNREAL in a maze of coloured pixels, with one reward that is far away: its auxiliary tasks learn to change pixels, to
// predict rewards and to value replayed frames. The third command runs A2C, which is the same without these tasks.
//   npx effect run examples/rollouts/unreal-maze.ts --seed 1
//   npx effect run examples/rollouts/unreal-maze.ts --seed 1 --set algorithm.lstm=64
//   npx effect run examples/rollouts/unreal-maze.ts --seed 1 --config examples/rollouts/without-tasks.yaml
import { PixelMaze, Train, Unreal } from "effect-rl"

export default Train.run({
  env: PixelMaze.make({ layoutSeed: 1, apples: 0, maxSteps: 35 }),
  algorithm: Unreal.make({ nsteps: 10, replaySteps: 10, lambda: 0.95, learningRate: 1e-3, schedule: "constant" }),
  totalSteps: 30_000,
  validation: { everySteps: 10_000, episodes: 200, sampled: true },
})
