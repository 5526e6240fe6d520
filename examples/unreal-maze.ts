// UNREAL in a maze of coloured pixels: beside its policy it learns to change pixels, to foresee rewards and to value what
// it replays.
//   npx effect run examples/unreal-maze.ts --seed 1
//   npx effect run examples/unreal-maze.ts --seed 1 --set algorithm.lstm=64
import { PixelMaze, Train, Unreal } from "effect-rl"

export default Train.run({
  env: PixelMaze.env,
  numEnvs: 16,
  algorithm: Unreal.make({ lambda: 0.95, learningRate: 5e-3, schedule: "constant" }),
  totalSteps: 150_000,
  validation: { everySteps: 50_000, episodes: 100, sampled: true },
})
