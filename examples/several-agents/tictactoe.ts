// PPO learns tic-tac-toe by self-play: the next value is the opponent's, so the discount is −1. The validation plays
// against a perfect opponent, so a draw is the best result.
//   npx effect run examples/several-agents/tictactoe.ts --seed 1
import { Ppo, TicTacToe, Train } from "effect-rl"

export default Train.run({
  env: TicTacToe.selfPlay,
  numEnvs: 64,
  algorithm: Ppo.make({
    gamma: -1,
    lambda: 1,
    hidden: [128, 128],
    convolutions: [],
    learningRate: 1e-3,
    nsteps: 32,
    minibatches: 8,
    entropyCoefficient: 0.1,
    clipValue: false,
  }),
  totalSteps: 3_000_000,
  validation: { everySteps: 500_000, episodes: 100, envs: [TicTacToe.optimal] },
})
