/**
 * Catch, in the style of MinAtar: balls fall through a field of 10 × 10, and a paddle at the bottom catches them. A
 * caught ball is worth 1; a missed one costs 1 and ends the game. With a probability of 0.1 the last action is
 * repeated. At first a ball falls when the previous one has landed; after every five catches the balls come closer, up
 * to one every four steps. Each ball falls where a paddle that caught the previous one can still be in time.
 *
 * Actions: left, stay, right. The observation's planes (grids of zeros and ones): ball, paddle.
 */
import * as Schema from "effect/Schema"
import { fraction } from "../../../base/config/fields.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { checkOptions } from "../../../base/EnvError.ts"
import { boardEnv, type BoardEnv, mark, type Rules, sticky } from "../internal/board.ts"
import { boardPictures } from "../ui/board.ts"
import { catching } from "../ui/boards.ts"

const side = 10

// These are offsets in a state. `untilNext` is the number of steps until the next ball is dropped.
const over = 0
const paddle = 1
const lastAction = 2
const caught = 3
const untilNext = 4
/** The offset of the column of the ball that was dropped last. */
const dropped = 5
/** The offset of the balls: for each row, the column of its ball counted from 1, or 0 if it has none. */
const balls = 6

const catchesPerLevel = 5
/** The smallest number of steps between two balls. */
const leastGap = 4

const rulesWith = (stickiness: number, ramps: boolean): Rules => {
  /** Drops a ball in a column that the paddle can reach in time, and sets the number of steps until the next one. */
  const drop = (state: Int32Array, at: number, random: Stream): void => {
    const level = ramps ? Math.floor(state[at + caught] / catchesPerLevel) : 0
    const gap = Math.max(leastGap, side - 1 - level)
    state[at + untilNext] = gap
    const lowest = Math.max(0, state[at + dropped] - gap + 1)
    const highest = Math.min(side - 1, state[at + dropped] + gap - 1)
    state[at + dropped] = lowest + random.integer(highest - lowest + 1)
    state[at + balls] = 1 + state[at + dropped]
  }
  return {
    stateSize: balls + side,
    reset: (state, at, random) => {
      state[at + paddle] = side >> 1
      state[at + dropped] = side >> 1
      state[at + lastAction] = 1
      drop(state, at, random)
    },
    step: (state, at, action, random) => {
      const taken = sticky(state, at + lastAction, action, stickiness, random)
      state[at + paddle] = Math.min(Math.max(state[at + paddle] + taken - 1, 0), side - 1)
      for (let row = side - 1; row > 0; row--) state[at + balls + row] = state[at + balls + row - 1]
      state[at + balls] = 0
      const landed = state[at + balls + side - 1]
      let reward = 0
      if (landed !== 0) {
        const isCaught = landed - 1 === state[at + paddle]
        reward = isCaught ? 1 : -1
        if (isCaught) state[at + caught]++
        else state[at + over] = 1
      }
      if (--state[at + untilNext] === 0) drop(state, at, random)
      return reward
    },
    show: (state, at, into, to) => {
      for (let row = 0; row < side; row++) {
        const column = state[at + balls + row]
        if (column !== 0) mark(into, to, 0, side, row, column - 1)
      }
      mark(into, to, 1, side, side - 1, state[at + paddle])
    },
  }
}

export const CatchOptions = Schema.Struct({
  /** The probability that the last action is repeated. Default: 0.1. */
  stickiness: Schema.optionalKey(fraction),
  /** Whether balls come closer with the score. Default: true. */
  ramps: Schema.optionalKey(Schema.Boolean),
})
export type CatchOptions = typeof CatchOptions.Type

/** Makes the game with other options: `Catch.make({ stickiness: 0, ramps: false })`. */
export const make = (options: CatchOptions = {}): BoardEnv => {
  checkOptions("Catch", options, CatchOptions)
  return boardEnv({
    id: "Catch-v0",
    recipe: { name: "Catch", options },
    planes: ["ball", "paddle"],
    size: side,
    actions: 3,
    ...boardPictures("Catch-v0", side, catching, { moves: "←·→" }),
    maxSteps: 1000,
    rules: rulesWith(options.stickiness ?? 0.1, options.ramps ?? true),
  })
}

/** The game with its default options: `Batch.make(Catch.env, 32)`. */
export const env: BoardEnv = make()
