// Tic-tac-toe, in which two agents take turns and a mask allows free places only. PPO plays against past policies of itself,
// which checkpoints save. Validations play against a random player, and against the TicTacToe env's player who never loses.
//   npx effect run examples/several-agents/past-selves.ts --seed 1
import { MultiEnv, Ppo, Space, TicTacToe, Train } from "effect-rl"

const lines = ["012", "345", "678", "036", "147", "258", "048", "246"].map((line) => [...line].map(Number))

export const game = MultiEnv.turns({
  id: "tic-tac-toe",
  agents: ["cross", "circle"],
  observationSpace: Space.box(0, 1, [2, 3, 3]),
  actionSpace: Space.discrete(9),
  reset: () => ({ board: Array.from({ length: 9 }, () => -1), turn: 0 }),
  turn: ({ turn }) => turn,
  observe: ({ board }, agent) => [...board.map((who) => +(who === agent)), ...board.map((who) => +(who === 1 - agent))],
  actionMask: ({ board }) => board.map((who) => who === -1),
  step: ({ board, turn }, place) => {
    const next = board.with(place, turn)
    const won = lines.some((line) => line.every((at) => next[at] === turn))
    const rewards = won ? [turn === 0 ? 1 : -1, turn === 0 ? -1 : 1] : [0, 0]
    return { state: { board: next, turn: 1 - turn }, rewards, terminated: won || !next.includes(-1) }
  },
})

/** Plays as TicTacToe's own opponents do, whose boards have a 1 for their own stones and a 2 for the others. */
const neverLoses: MultiEnv.Player<Space.Discrete, Space.Box> = (planes, { random }) =>
  TicTacToe.playOptimally(
    Array.from({ length: 9 }, (_, at) => planes[at] + 2 * planes[9 + at]),
    random,
  )

export default Train.run({
  env: MultiEnv.against(game, MultiEnv.pastSelves({ every: 10, size: 20 })),
  numEnvs: 64,
  algorithm: Ppo.make({
    hidden: [128, 128],
    convolutions: [],
    learningRate: 1e-3,
    nsteps: 32,
    minibatches: 8,
    entropyCoefficient: 0.03,
  }),
  totalSteps: 500_000,
  validation: {
    everySteps: 100_000,
    episodes: 200,
    envs: [
      MultiEnv.against(game, "random"),
      MultiEnv.against(game, neverLoses, { id: "tic-tac-toe against who never loses" }),
    ],
  },
})
