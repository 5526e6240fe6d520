/**
 * A maze with a key and a locked door, drawn anew for every episode. A wall splits the field; the agent and the key are
 * on one side of it, the goal is on the other. One walks onto the key to take it and, having it, into the door to open
 * it. The only reward is a point at the goal: nothing tells the way there.
 *
 * Actions: up, down, left, right. Planes: wall, door, goal, key, agent, and one that is all ones while the key is held.
 */
import { stream } from "../../rng/Rng.ts"
import type { Stream } from "../../rng/Rng.ts"
import { boardEnv, type BoardEnv, mark, type Rules } from "../internal/board.ts"
import { palette } from "../internal/draw.ts"
import { EnvError } from "../EnvError.ts"

export interface Options {
  /** Width and height, the walls around included. 8 by default. */
  readonly size?: number
  /** Steps before an episode is cut off. 4 × size² by default. */
  readonly maxSteps?: number
  /** One layout for all episodes, drawn from this seed. Every episode has its own by default. */
  readonly layoutSeed?: number
  readonly id?: string
}

// Places in a state.
const over = 0
const agent = 1
const key = 2
const door = 3
const goal = 4
const wall = 5
const held = 6
const opened = 7

const rowStep = [-1, 1, 0, 0]
const columnStep = [0, 0, -1, 1]

/** Places are numbered row by row; the split is a column of wall. */
const rulesFor = (size: number, layoutSeed: number | undefined): Rules => {
  const place = (row: number, column: number): number => row * size + column
  const inside = size - 2

  const layout = (state: Int32Array, at: number, random: Stream): void => {
    const column = 2 + random.integer(size - 4)
    state[at + wall] = column
    state[at + door] = place(1 + random.integer(inside), column)
    const left = column - 1
    const right = size - 2 - column
    state[at + key] = place(1 + random.integer(inside), 1 + random.integer(left))
    do state[at + agent] = place(1 + random.integer(inside), 1 + random.integer(left))
    while (state[at + agent] === state[at + key])
    state[at + goal] = place(1 + random.integer(inside), column + 1 + random.integer(right))
  }

  const isWall = (state: Int32Array, at: number, row: number, column: number): boolean =>
    row === 0 ||
    column === 0 ||
    row === size - 1 ||
    column === size - 1 ||
    (column === state[at + wall] && place(row, column) !== state[at + door])

  return {
    stateSize: 8,
    reset: (state, at, random) =>
      layout(state, at, layoutSeed === undefined ? random : stream(layoutSeed, "key-door", size)),
    step: (state, at, action) => {
      const from = state[at + agent]
      const row = Math.floor(from / size) + rowStep[action]
      const column = (from % size) + columnStep[action]
      const to = place(row, column)
      if (isWall(state, at, row, column)) return 0
      if (to === state[at + door] && state[at + opened] === 0) {
        if (state[at + held] === 0) return 0
        state[at + opened] = 1
      }
      state[at + agent] = to
      if (to === state[at + key]) state[at + held] = 1
      if (to !== state[at + goal]) return 0
      state[at + over] = 1
      return 1
    },
    show: (state, at, into, to) => {
      for (let row = 0; row < size; row++) {
        for (let column = 0; column < size; column++) {
          if (isWall(state, at, row, column)) mark(into, to, 0, size, size, row, column)
        }
      }
      const put = (plane: number, where: number): void => {
        into[to + plane * size * size + where] = 1
      }
      if (state[at + opened] === 0) put(1, state[at + door])
      put(2, state[at + goal])
      if (state[at + held] === 0) put(3, state[at + key])
      put(4, state[at + agent])
      if (state[at + held] !== 0) into.fill(1, to + 5 * size * size, to + 6 * size * size)
    },
  }
}

/** @example `KeyDoor.make({ size: 10 })` */
export const make = (options: Options = {}): BoardEnv => {
  const { size = 8, layoutSeed } = options
  const { id = `KeyDoor-${size}x${size}-v0`, maxSteps = 4 * size * size } = options
  if (!Number.isInteger(size) || size < 5) {
    throw new EnvError({ env: id, message: `KeyDoor: size ${size}; it must be a whole number of at least 5` })
  }
  return boardEnv({
    id,
    planes: [
      { name: "wall", letter: "█", colour: palette.ink },
      { name: "door", letter: "╫", colour: palette.pole },
      { name: "goal", letter: "★", colour: palette.goal },
      { name: "key", letter: "⚷", colour: palette.joint },
      { name: "agent", letter: "☻", colour: palette.body },
      { name: "held", letter: "", colour: "" },
    ],
    height: size,
    width: size,
    actions: 4,
    maxSteps,
    rules: rulesFor(size, layoutSeed),
  })
}

/** @example `Batch.make(KeyDoor.env, 32)` */
export const env: BoardEnv = make()
export const small: BoardEnv = make({ size: 6 })
export const large: BoardEnv = make({ size: 10 })
