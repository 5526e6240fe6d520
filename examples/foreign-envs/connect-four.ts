// PPO plays PettingZoo's Connect Four against itself: one policy plays both sides, and a Python process steps the games. It
// needs: python3 -m pip install "pettingzoo[classic]" gymnasium
//   npx effect run examples/foreign-envs/connect-four.ts --seed 1
import { MultiEnv, Ppo, Train } from "effect-rl"
import { PettingZoo } from "effect-rl/node"

const game = PettingZoo.env("classic/connect_four_v3", { python: process.env.EFFECT_RL_PYTHON ?? "python3" })

export default Train.run({
  env: game,
  // A batch has a row for each side of each game, so these are 16 games.
  numEnvs: 32,
  algorithm: Ppo.make({
    hidden: [128, 128],
    convolutions: [],
    nsteps: 64,
    minibatches: 8,
    entropyCoefficient: 0.02,
  }),
  totalSteps: 200_000,
  validation: { everySteps: 50_000, episodes: 100, envs: [MultiEnv.against(game, "random")] },
})
