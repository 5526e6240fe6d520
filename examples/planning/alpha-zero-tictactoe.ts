// AlphaZero learns tic-tac-toe by self-play: a tree search over the game's own rules chooses each move, and the network
// learns what the searches found. The validation plays against a perfect opponent, so a draw is the best result.
//   npx effect run examples/planning/alpha-zero-tictactoe.ts --seed 1
import { AlphaZero, TicTacToe, Train } from "effect-rl"

export default Train.run({
  env: TicTacToe.selfPlay,
  numEnvs: 32,
  algorithm: AlphaZero.make({
    gamma: -1,
    lambda: 0.5,
    hidden: [128, 128],
    convolutions: [],
    simulations: 100,
    // A search that explores little misses what an opponent who never errs then finds.
    exploration: 4,
    updates: 32,
    learningRate: 2e-3,
    schedule: "linear",
  }),
  totalSteps: 40_000,
  validation: { everySteps: 10_000, episodes: 100, envs: [TicTacToe.optimal] },
})
