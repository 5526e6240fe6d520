// Tic-tac-toe against itself: what is good for one side is bad for the other, so the discount is −1. The validation is
// against somebody who never loses: a draw is the best there is.
//   npx effect run examples/tictactoe.ts --seed 1
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
