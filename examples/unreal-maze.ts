// UNREAL in a maze of coloured pixels, with one reward that is far away: beside its policy it learns to change pixels, to
// foresee rewards and to value what it replays. The third line is A2C, the same without these tasks.
//   npx effect run examples/unreal-maze.ts --seed 1
//   npx effect run examples/unreal-maze.ts --seed 1 --set algorithm.lstm=64
//   npx effect run examples/unreal-maze.ts --seed 1 --config examples/without-tasks.yaml
import { PixelMaze, Train, Unreal } from "effect-rl"

export default Train.run({
  env: PixelMaze.make({ layoutSeed: 1, apples: 0, maxSteps: 35 }),
  algorithm: Unreal.make({ nsteps: 10, replaySteps: 10, lambda: 0.95, learningRate: 1e-3, schedule: "constant" }),
  totalSteps: 30_000,
  validation: { everySteps: 10_000, episodes: 200, sampled: true },
})
