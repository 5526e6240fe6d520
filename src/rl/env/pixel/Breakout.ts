/**
 * MinAtar's Breakout (Young and Tian 2019, arXiv:1903.03176): a ball that flies along diagonals, a paddle, and three
 * rows of bricks that return when all are gone. The reward is 1 per brick; the game ends when the ball is missed. With
 * a probability of 0.1 the last action is repeated. This game has no difficulty ramp and no time limit.
 *
 * Actions are MinAtar's minimal set: nothing, left, right. The observation's planes of 10 × 10 zeros and ones: paddle,
 * ball, trail (the ball's last place), brick. Unlike in MinAtar, a new episode forgets the last action, so that each
 * episode can be replayed alone.
 */
import * as Schema from "effect/Schema"
import { fraction } from "../../../base/config/fields.ts"
import { checkOptions } from "../../../base/EnvError.ts"
import { boardEnv, type BoardEnv, mark, type Rules, sticky } from "../internal/board.ts"
import { boardPictures } from "../ui/board.ts"
import { breakout } from "../ui/boards.ts"

const side = 10
const firstBrickRow = 1
const brickRows = 3

// These are offsets in a state. `lastX` and `lastY` are the ball's last place; `struck` is 1 while the ball flies
// through bricks after it has broken one; from `bricks` on, a number tells whether each brick is there.
const over = 0
const paddle = 1
const ballX = 2
const ballY = 3
const direction = 4
const lastX = 5
const lastY = 6
const struck = 7
const lastAction = 8
const bricks = 9

// The ball's direction is 0 (up-left), 1 (up-right), 2 (down-right) or 3 (down-left). Each list has a number for each
// direction: the steps in x and y, and the new direction after the ball hits a side wall, the ceiling (also a brick, or
// the paddle from above), and the paddle's edge.
const stepX = [-1, 1, 1, -1]
const stepY = [-1, -1, 1, 1]
const offWall = [1, 0, 3, 2]
const offCeiling = [3, 2, 1, 0]
const back = [2, 3, 0, 1]

const rulesWith = (stickiness: number): Rules => ({
  stateSize: bricks + brickRows * side,
  reset: (state, at, random) => {
    const fromRight = random.integer(2) === 1
    state[at + paddle] = 4
    state[at + ballX] = fromRight ? side - 1 : 0
    state[at + ballY] = 3
    state[at + direction] = fromRight ? 3 : 2
    state[at + lastX] = state[at + ballX]
    state[at + lastY] = state[at + ballY]
    state.fill(1, at + bricks, at + bricks + brickRows * side)
  },
  step: (state, at, action, random) => {
    const taken = sticky(state, at + lastAction, action, stickiness, random)
    if (taken === 1) state[at + paddle] = Math.max(0, state[at + paddle] - 1)
    else if (taken === 2) state[at + paddle] = Math.min(side - 1, state[at + paddle] + 1)

    const fromX = state[at + ballX]
    const fromY = state[at + ballY]
    let heading = state[at + direction]
    let x = fromX + stepX[heading]
    let y = fromY + stepY[heading]
    if (x < 0 || x >= side) {
      x = Math.min(Math.max(x, 0), side - 1)
      heading = offWall[heading]
    }
    let reward = 0
    let striking = false
    const brick = at + bricks + (y - firstBrickRow) * side + x
    if (y < 0) {
      y = 0
      heading = offCeiling[heading]
    } else if (y >= firstBrickRow && y < firstBrickRow + brickRows && state[brick] === 1) {
      striking = true
      // A ball that has just broken a brick flies through the next one.
      if (state[at + struck] === 0) {
        reward = 1
        state[at + struck] = 1
        state[brick] = 0
        y = fromY
        heading = offCeiling[heading]
      }
    } else if (y === side - 1) {
      if (!anyBrick(state, at)) {
        state.fill(1, at + bricks, at + bricks + brickRows * side)
      }
      if (fromX === state[at + paddle]) {
        heading = offCeiling[heading]
        y = fromY
      } else if (x === state[at + paddle]) {
        heading = back[heading]
        y = fromY
      } else {
        state[at + over] = 1
      }
    }
    if (!striking) state[at + struck] = 0
    state[at + lastX] = fromX
    state[at + lastY] = fromY
    state[at + ballX] = x
    state[at + ballY] = y
    state[at + direction] = heading
    return reward
  },
  show: (state, at, into, to) => {
    mark(into, to, 0, side, side - 1, state[at + paddle])
    mark(into, to, 1, side, state[at + ballY], state[at + ballX])
    mark(into, to, 2, side, state[at + lastY], state[at + lastX])
    const wall = to + (3 * side + firstBrickRow) * side
    for (let brick = 0; brick < brickRows * side; brick++) into[wall + brick] = state[at + bricks + brick]
  },
})

const anyBrick = (state: Int32Array, at: number): boolean => {
  for (let brick = at + bricks; brick < at + bricks + brickRows * side; brick++) if (state[brick] !== 0) return true
  return false
}

export const BreakoutOptions = Schema.Struct({
  /** The probability that the last action is repeated. Default: 0.1. */
  stickiness: Schema.optionalKey(fraction),
})
export type BreakoutOptions = typeof BreakoutOptions.Type

/** Makes the env with other options: `Breakout.make({ stickiness: 0 })`. */
export const make = (options: BreakoutOptions = {}): BoardEnv => {
  checkOptions("Breakout", options, BreakoutOptions)
  return boardEnv({
    id: "MinAtar/Breakout-v1",
    recipe: { name: "Breakout", options },
    planes: ["paddle", "ball", "trail", "brick"],
    size: side,
    actions: 3,
    ...boardPictures("MinAtar/Breakout-v1", side, breakout, { moves: "·←→" }),
    rules: rulesWith(options.stickiness ?? 0.1),
  })
}

/** The env with its default options: `Batch.make(Breakout.env, 32)`. */
export const env: BoardEnv = make()
