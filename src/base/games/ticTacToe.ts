/**
 * Defines the rules of tic-tac-toe on a list of nine places, each 0 if free, `mine` (1) for the player whose turn it
 * is, `theirs` (2) for the other player. The env and the task in words both use them.
 */
import type { Stream } from "../rng/Rng.ts"

export const places = 9
export const mine = 1
export const theirs = 2

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

/** Tells whether the player `who` (1 or 2) has three in a row on the board that begins at offset `at`. */
export const wins = (board: ArrayLike<number>, at: number, who: number): boolean =>
  lines.some((line) => line.every((place) => board[at + place] === who))

export const isFull = (board: ArrayLike<number>, at: number): boolean => {
  for (let place = 0; place < places; place++) if (board[at + place] === 0) return false
  return true
}

/** Returns the board from the other player's side: 1 and 2 are swapped. */
export const turned = (board: ReadonlyArray<number>): ReadonlyArray<number> =>
  board.map((who) => (who === 0 ? 0 : who === mine ? theirs : mine))

const values = new Map<string, number>()

/** Returns the value of a board if both play perfectly, for the player whose turn it is: 1, 0 or −1. */
export const valueOf = (board: ReadonlyArray<number>): number => {
  const key = board.join("")
  const cached = values.get(key)
  if (cached !== undefined) return cached
  const value = wins(board, 0, theirs)
    ? -1
    : isFull(board, 0)
      ? 0
      : Math.max(...movesOf(board).map(({ worth }) => worth))
  values.set(key, value)
  return value
}

/** Returns the free places, each with the value of a move there for the player who moves. */
const movesOf = (board: ReadonlyArray<number>) =>
  board.flatMap((who, place) => (who === 0 ? [{ place, worth: -valueOf(turned(board.with(place, mine))) }] : []))

/** Chooses a free place at random. */
export const playRandomly = (board: ReadonlyArray<number>, random: Stream): number => {
  const free = movesOf(board)
  return free[random.integer(free.length)].place
}

/** Chooses one of the best moves at random. */
export const playOptimally = (board: ReadonlyArray<number>, random: Stream): number => {
  const moves = movesOf(board)
  const best = Math.max(...moves.map(({ worth }) => worth))
  const good = moves.filter(({ worth }) => worth === best)
  return good[random.integer(good.length)].place
}
