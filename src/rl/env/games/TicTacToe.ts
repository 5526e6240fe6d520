/**
 * Tic-tac-toe: three in a row win. The reward is 1 for winning, −1 for losing or for choosing a taken place (which ends
 * the game), and 0 for a draw.
 *
 * Against an opponent (`make`), a step is the agent's move and the opponent's reply; who moves first is drawn at
 * random. In `selfPlay` a step is one move, and the same policy plays both sides: it observes the board from the side
 * of the player whose turn it is. What is good for this player is bad for the other, so such a game is learnt with a
 * discount of −1, `Ppo.make({ gamma: -1 })`: then every return and advantage has the right sign for its player.
 *
 * Actions: the nine places. The observation is two planes (grids of zeros and ones) of 3 × 3: the stones of the player
 * whose turn it is, and those of the other player.
 */
import * as Schema from "effect/Schema"
import type { Stream } from "../../../base/rng/Rng.ts"
import {
  isFull,
  mine,
  places,
  playOptimally,
  playRandomly,
  theirs,
  turned,
  wins,
} from "../../../base/games/ticTacToe.ts"
import { checkOptions, EnvError } from "../../../base/EnvError.ts"
import { boardEnv, type BoardEnv, type BoardGame, type Rules } from "../internal/board.ts"
import { boardPictures } from "../ui/board.ts"
import { ticTacToe } from "../ui/boards.ts"
import { display } from "../../../base/config/Config.ts"

export { playOptimally, playRandomly, turned, valueOf, wins } from "../../../base/games/ticTacToe.ts"

// `over` and `cells` are offsets in a state: 1 at `over` if the game has ended, the nine places from `cells` on. A
// place is 0 if free, `mine` (1) for the player whose turn it is (the agent, if it has an opponent), `theirs` (2) for
// the other player.
const over = 0
const cells = 1

export type TicTacToeOpponent = "random" | "optimal" | ((board: ReadonlyArray<number>, random: Stream) => number)

/**
 * Adds a check of its moves to a user's opponent. All games of a batch lie in one array, so a move outside the board would
 * change another game.
 */
const checked =
  (opponent: Exclude<TicTacToeOpponent, string>) =>
  (board: ReadonlyArray<number>, random: Stream): number => {
    const place = opponent(board, random)
    if (board[place] === 0) return place
    const message = `TicTacToe: the opponent played ${display(place)} on the board ${board.join("")}; expected the number of a free place, 0 to 8`
    throw new EnvError({ env: "TicTacToe", message })
  }

const boardAt = (state: Int32Array, at: number): ReadonlyArray<number> =>
  Array.from(state.subarray(at + cells, at + cells + places))

const show: Rules["show"] = (state, at, into, to) => {
  for (let place = 0; place < places; place++) {
    if (state[at + cells + place] === mine) into[to + place] = 1
    if (state[at + cells + place] === theirs) into[to + places + place] = 1
  }
}

/** Places a stone of `who` and returns this player's reward. Sets the state's flag `over` if the move ends the game. */
const put = (state: Int32Array, at: number, place: number, who: number): number => {
  if (state[at + cells + place] !== 0) {
    state[at + over] = 1
    return -1
  }
  state[at + cells + place] = who
  const won = wins(state, at + cells, who)
  if (won || isFull(state, at + cells)) state[at + over] = 1
  return won ? 1 : 0
}

/** Returns the rules of a game against an opponent, whose moves are a part of the agent's steps. */
const against = (opponent: TicTacToeOpponent): Rules => {
  const choose = opponent === "random" ? playRandomly : opponent === "optimal" ? playOptimally : checked(opponent)
  const answer = (state: Int32Array, at: number, random: Stream): number =>
    -put(state, at, choose(turned(boardAt(state, at)), random), theirs)
  return {
    stateSize: cells + places,
    reset: (state, at, random) => {
      if (random.integer(2) === 1) answer(state, at, random)
    },
    step: (state, at, action, random) => {
      const reward = put(state, at, action, mine)
      return state[at + over] !== 0 ? reward : answer(state, at, random)
    },
    show,
  }
}

/** The rules of self-play: every step is a move of the player whose turn it is. */
const bothSides: Rules = {
  stateSize: cells + places,
  reset: () => {},
  step: (state, at, action) => {
    const reward = put(state, at, action, mine)
    // Swap the stones: the next step is the other player's, whose own stones must be `mine`.
    for (let place = at + cells; place < at + cells + places; place++) {
      if (state[place] !== 0) state[place] = mine + theirs - state[place]
    }
    return reward
  },
  show,
}

const game = (id: string, rules: Rules, recipe?: BoardGame["recipe"]): BoardEnv =>
  boardEnv({
    id,
    ...(recipe === undefined ? {} : { recipe }),
    planes: ["mine", "theirs"],
    size: 3,
    actions: places,
    ...boardPictures(id, 3, ticTacToe, { turns: rules === bothSides }),
    rules,
  })

/** The options that a config can contain. */
export const TicTacToeOptions = Schema.Struct({
  opponent: Schema.optionalKey(Schema.Literals(["random", "optimal"])),
  id: Schema.optionalKey(Schema.NonEmptyString),
})
export type TicTacToeOptions = Omit<typeof TicTacToeOptions.Type, "opponent"> & {
  /** A function gets a board of nine numbers (0 is free, 1 its own stone, 2 the other's), and returns a free place. */
  readonly opponent?: TicTacToeOpponent
}

/** Makes the env with other options: `TicTacToe.make({ opponent: "optimal" })`. */
export const make = (options: TicTacToeOptions = {}): BoardEnv => {
  checkOptions("TicTacToe", options, TicTacToeOptions)
  const { opponent = "random" } = options
  const isOwn = typeof opponent === "function"
  // No config can contain a function, so this env must not have the id of one that a config can make.
  const { id = isOwn ? "TicTacToeOwnOpponent-v0" : "TicTacToe-v0" } = options
  return game(id, against(opponent), isOwn ? undefined : { name: "TicTacToe", options })
}

/** The env in which the agent plays against an opponent that moves at random. */
export const env: BoardEnv = make()
/** The env in which the agent plays against an opponent that never loses. */
export const optimal: BoardEnv = make({ opponent: "optimal", id: "TicTacToeOptimal-v0" })
/** The env in which the same policy plays both sides; train it with a discount of −1. */
export const selfPlay: BoardEnv = game("TicTacToeSelfPlay-v0", bothSides)
