/**
 * Keeps lists of moving things in the numbers of a game's state: first the number of things, then the numbers of each
 * (column, row, 1 if it moves to the right, and what the game adds), in the order in which they came.
 */
import { mark } from "../internal/board.ts"
import { isOnBoard, side } from "./minAtar.ts"

// These are the offsets in the numbers of a thing.
export const column = 0
export const row = 1
export const toRight = 2
/** The steps until the thing moves, for things that don't move in each step. */
export const untilMove = 3

/** A list in a state: its offset, the numbers of a thing, and the largest number of things. */
export interface MovingList {
  readonly from: number
  readonly size: number
  readonly most: number
}

/** The numbers that a list takes in a state. */
export const numbersIn = ({ size, most }: MovingList): number => 1 + size * most

/** Returns the number of things, within the list's bounds, since a state may come from a file. */
export const countOf = (state: Int32Array, at: number, { from, most }: MovingList): number =>
  Math.min(Math.max(state[at + from], 0), most)

/** Returns the place in the state of one thing's numbers. */
export const thingOf = (at: number, { from, size }: MovingList, index: number): number => at + from + 1 + index * size

/** Adds a thing at the end. A full list stays as it is; the games' lists are larger than they can become. */
export const add = (state: Int32Array, at: number, list: MovingList, ...numbers: ReadonlyArray<number>): void => {
  const count = countOf(state, at, list)
  if (count === list.most) return
  state.set(numbers, thingOf(at, list, count))
  state[at + list.from]++
}

/** Removes a thing, and clears the numbers behind the last one, so that equal games have equal states. */
export const remove = (state: Int32Array, at: number, list: MovingList, index: number): void => {
  const last = thingOf(at, list, countOf(state, at, list))
  const removed = thingOf(at, list, index)
  state.copyWithin(removed, removed + list.size, last)
  state.fill(0, last - list.size, last)
  state[at + list.from]--
}

/** Moves a thing by one column; returns whether it is still on the board. */
export const advance = (state: Int32Array, thing: number): boolean => {
  state[thing + column] += state[thing + toRight] === 1 ? 1 : -1
  return isOnBoard(state[thing + column])
}

export const isAt = (state: Int32Array, thing: number, x: number, y: number): boolean =>
  state[thing + column] === x && state[thing + row] === y

/** Returns the index of the first thing at a place; −1 if there is none. */
export const firstAt = (state: Int32Array, at: number, list: MovingList, x: number, y: number): number => {
  const count = countOf(state, at, list)
  for (let index = 0; index < count; index++) if (isAt(state, thingOf(at, list, index), x, y)) return index
  return -1
}

/**
 * Calls a function for each thing, from the last to the first, and returns the sum of what it returns. The function may
 * remove the thing that it gets.
 */
export const sumReversed = (
  state: Int32Array,
  at: number,
  list: MovingList,
  move: (state: Int32Array, at: number, index: number) => number,
): number => {
  let sum = 0
  for (let index = countOf(state, at, list) - 1; index >= 0; index--) sum += move(state, at, index)
  return sum
}

/** The planes in which a list's things are marked: their places, and those behind them. */
export interface ShownIn {
  readonly plane: number
  readonly trail?: number
}

/** Marks all things of a list in an observation, which begins at `to`. */
export const markAll = (
  state: Int32Array,
  at: number,
  list: MovingList,
  { plane, trail }: ShownIn,
  into: Float32Array,
  to: number,
): void => {
  const count = countOf(state, at, list)
  for (let index = 0; index < count; index++) {
    const thing = thingOf(at, list, index)
    const behind = state[thing + column] + (state[thing + toRight] === 1 ? -1 : 1)
    mark(into, to, plane, side, state[thing + row], state[thing + column])
    if (trail !== undefined && isOnBoard(behind)) mark(into, to, trail, side, state[thing + row], behind)
  }
}
