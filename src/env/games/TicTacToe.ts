/**
 * Tic-tac-toe: three in a row win. A point for winning, minus one for losing or for taking a place that is taken (which
 * ends the game), nothing for a draw.
 *
 * Against an opponent (`make`), a step is the agent's move and the answer to it; who begins is drawn. In `selfPlay` a
 * step is one move, and the same policy makes the moves of both sides, each time seeing the board from the side of who
 * moves. What is good for the one that moves next is bad for the one that has just moved, so such a game is learnt with a
 * discount of −1: `Ppo.make({ gamma: -1 })`; then every return and advantage has the right sign for its mover.
 *
 * Actions: the nine places. Planes of 3 × 3: mine, the other's.
 */
import { Schema } from "effect"
import type { Stream } from "../../rng/Rng.ts"
import { EnvError } from "../EnvError.ts"
import { boardEnv, type BoardEnv, type BoardGame, type Rules } from "../internal/board.ts"
import { describe } from "../internal/describe.ts"
import { palette } from "../internal/draw.ts"
import { ticTacToe } from "../ui/boards.ts"

// Places in a state: then the nine places, 1 for who moves next (the agent, against an opponent), 2 for the other.
const over = 0
const cells = 1
const places = 9
const mine = 1
const theirs = 2

const lines = [
  [0, 1, 2],
  [3, 4, 5],
  [6, 7, 8],
  [0, 3, 6],
  [1, 4, 7],
  [2, 5, 8],
  [0, 4, 8],
  [2, 4, 6],
]

export type Opponent = "random" | "optimal" | ((board: ReadonlyArray<number>, random: Stream) => number)

/** A board is nine numbers: 0 free, 1 of who moves next, 2 of the other. */
export const wins = (board: ArrayLike<number>, at: number, who: number): boolean =>
  lines.some((line) => line.every((place) => board[at + place] === who))

const isFull = (board: ArrayLike<number>, at: number): boolean => {
  for (let place = 0; place < places; place++) if (board[at + place] === 0) return false
  return true
}

/** The board as the other sees it. */
export const turned = (board: ReadonlyArray<number>): ReadonlyArray<number> =>
  board.map((who) => (who === 0 ? 0 : who === mine ? theirs : mine))

const known = new Map<string, number>()

/** What perfect play by both makes of a board, for who moves next: 1, 0 or −1. */
export const valueOf = (board: ReadonlyArray<number>): number => {
  const key = board.join("")
  const before = known.get(key)
  if (before !== undefined) return before
  const value = wins(board, 0, theirs)
    ? -1
    : isFull(board, 0)
      ? 0
      : Math.max(...movesOf(board).map(({ worth }) => worth))
  known.set(key, value)
  return value
}

const movesOf = (board: ReadonlyArray<number>) =>
  board.flatMap((who, place) => (who === 0 ? [{ place, worth: -valueOf(turned(board.with(place, mine))) }] : []))

/** Any free place. */
export const playRandomly = (board: ReadonlyArray<number>, random: Stream): number => {
  const free = movesOf(board)
  return free[random.integer(free.length)].place
}

/** One of the best moves, by a draw. */
export const playOptimally = (board: ReadonlyArray<number>, random: Stream): number => {
  const moves = movesOf(board)
  const best = Math.max(...moves.map(({ worth }) => worth))
  const good = moves.filter(({ worth }) => worth === best)
  return good[random.integer(good.length)].place
}

/** Somebody's own opponent may be wrong; a stone beside the board would be in another game. */
const checked =
  (opponent: Exclude<Opponent, string>) =>
  (board: ReadonlyArray<number>, random: Stream): number => {
    const place = opponent(board, random)
    if (board[place] === 0) return place
    const message = `TicTacToe: the opponent played ${describe(place)} on the board ${board.join("")}; expected the number of a free place, 0 to 8`
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

/** Puts a stone; the reward for who puts it, and whether the game is over. */
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

const against = (opponent: Opponent): Rules => {
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

const bothSides: Rules = {
  stateSize: cells + places,
  reset: () => {},
  step: (state, at, action) => {
    const reward = put(state, at, action, mine)
    // Who moves next sees the board as theirs.
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
    planes: [
      { name: "mine", letter: "×", colour: palette.body },
      { name: "theirs", letter: "○", colour: palette.pole },
    ],
    height: 3,
    width: 3,
    actions: places,
    ui: ticTacToe(id, rules === bothSides),
    rules,
  })

/** What a config can say of it. */
export const Options = Schema.Struct({
  opponent: Schema.optionalKey(Schema.Literals(["random", "optimal"])),
  id: Schema.optionalKey(Schema.NonEmptyString),
})
export type Options = Omit<typeof Options.Type, "opponent"> & {
  /** A function is given a board of nine numbers (0 free, 1 its own, 2 the other's) and names a free place. */
  readonly opponent?: Opponent
}

/** @example `TicTacToe.make({ opponent: "optimal" })` */
export const make = (options: Options = {}): BoardEnv => {
  const { opponent = "random" } = options
  const isOwn = typeof opponent === "function"
  // One's own opponent is no part of any config, so it must not go by the name of what a config can say.
  const { id = isOwn ? "TicTacToeOwnOpponent-v0" : "TicTacToe-v0" } = options
  return game(id, against(opponent), isOwn ? undefined : { name: "TicTacToe", options })
}

/** Against an opponent that plays at random. */
export const env: BoardEnv = make()
/** Against one that never loses. */
export const optimal: BoardEnv = make({ opponent: "optimal", id: "TicTacToeOptimal-v0" })
/** Both sides by the same policy; learn it with a discount of −1. */
export const selfPlay: BoardEnv = game("TicTacToeSelfPlay-v0", bothSides)
