/**
 * MinAtar's Breakout (Young and Tian 2019, arXiv:1903.03176): a ball that flies along diagonals, a paddle, and three
 * rows of bricks that return when all are gone. The reward is 1 per brick; the game ends when the ball is missed. With
 * a probability of 0.1 the last action is repeated. This game has no difficulty ramp and no time limit.
 *
 * Actions are MinAtar's minimal set: nothing, left, right. The observation's planes of 10 × 10 zeros and ones: paddle,
 * ball, trail (the ball's last place), brick. Unlike in MinAtar, a new episode forgets the last action, so that each
 * episode can be replayed alone.
 */
import { checkOptions } from "../../../base/EnvError.ts"
import * as G from "../../../tensor/graph/ops.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { type BoardEnv, mark } from "../internal/board.ts"
import { flagged, lookUp, numbersOf } from "../internal/stateTensors.ts"
import { breakout } from "../ui/minAtarBoards.ts"
import { actions, boardOf, type GraphForm, minAtarEnv, MinAtarOptions, moved, places, side } from "./minAtar.ts"

const firstBrickRow = 1
const brickRows = 3
const brickPlaces = brickRows * side

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

const buildWall = (state: Int32Array, at: number): void => {
  state.fill(1, at + bricks, at + bricks + brickPlaces)
}

const hasBricks = (state: Int32Array, at: number): boolean => {
  for (let brick = at + bricks; brick < at + bricks + brickPlaces; brick++) if (state[brick] !== 0) return true
  return false
}

const reset = (state: Int32Array, at: number, random: Stream): void => {
  const fromRight = random.integer(2) === 1
  state[at + paddle] = 4
  state[at + ballX] = fromRight ? side - 1 : 0
  state[at + ballY] = 3
  state[at + direction] = fromRight ? 3 : 2
  state[at + lastX] = state[at + ballX]
  state[at + lastY] = state[at + ballY]
  buildWall(state, at)
}

const step = (state: Int32Array, at: number, action: number): number => {
  if (action === actions.left) state[at + paddle] = moved(state[at + paddle], -1)
  else if (action === actions.right) state[at + paddle] = moved(state[at + paddle], 1)

  const fromX = state[at + ballX]
  const fromY = state[at + ballY]
  let heading = state[at + direction]
  let x = fromX + stepX[heading]
  let y = fromY + stepY[heading]
  if (x < 0 || x >= side) {
    x = moved(x, 0)
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
    if (!hasBricks(state, at)) buildWall(state, at)
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
}

const show = (state: Int32Array, at: number, into: Float32Array, to: number): void => {
  mark(into, to, 0, side, side - 1, state[at + paddle])
  mark(into, to, 1, side, state[at + ballY], state[at + ballX])
  mark(into, to, 2, side, state[at + lastY], state[at + lastX])
  const wall = to + (3 * side + firstBrickRow) * side
  for (let brick = 0; brick < brickPlaces; brick++) into[wall + brick] = state[at + bricks + brick]
}

// What follows are the same rules as expressions of tensors.

/** Returns a board with a one at a place: [N] and [N] → [N, places]. */
const pointed = (y: G.Tensor, x: G.Tensor): G.Tensor => G.oneHot(G.cast(G.add(G.mul(y, side), x), "i32"), places)

/** Returns the number that a list has for each direction. */
const chosen = (list: ReadonlyArray<number>, heading: G.Tensor): G.Tensor =>
  G.gather(G.constant(Float32Array.from(list)), G.cast(heading, "i32"))

const observeGraph: GraphForm["observe"] = (state) => {
  const number = (at: number): G.Tensor => numbersOf(state, at)
  const bottom = G.pad(G.oneHot(G.cast(number(paddle), "i32"), side), [0, places - side], [0, 0])
  const [above, below] = [firstBrickRow * side, places - (firstBrickRow + brickRows) * side]
  const wall = G.pad(boardOf(state, bricks, brickPlaces), [0, above], [0, below])
  return G.concat([bottom, pointed(number(ballY), number(ballX)), pointed(number(lastY), number(lastX)), wall], 1)
}

const stepGraph: GraphForm["step"] = (state, action) => {
  const number = (at: number): G.Tensor => numbersOf(state, at)
  const by = G.sub(G.cast(G.equal(action, actions.right), "f32"), G.cast(G.equal(action, actions.left), "f32"))
  const at = G.clip(G.add(number(paddle), by), 0, side - 1)
  const [fromX, fromY, heading] = [number(ballX), number(ballY), number(direction)]
  const free = G.add(fromX, chosen(stepX, heading))
  const x = G.clip(free, 0, side - 1)
  const y = G.add(fromY, chosen(stepY, heading))
  const turned = G.where(G.notEqual(free, x), chosen(offWall, heading), heading)

  const wall = boardOf(state, bricks, brickPlaces)
  const place = G.add(G.mul(G.sub(y, firstBrickRow), side), x)
  const isInWall = G.and(G.greaterEqual(place, 0), G.less(place, brickPlaces))
  const brick = G.cast(G.clip(place, 0, brickPlaces - 1), "i32")
  const strikes = G.and(isInWall, G.greater(lookUp(wall, brick), 0))
  const breaks = G.and(strikes, G.equal(number(struck), 0))
  const isLow = G.equal(y, side - 1)
  const meets = G.and(isLow, G.equal(fromX, at))
  const meetsEdge = G.and(isLow, G.and(G.not(meets), G.equal(x, at)))
  const isOver = G.and(isLow, G.not(G.or(meets, meetsEdge)))
  const isHigh = G.less(y, 0)
  const bounces = G.or(isHigh, G.or(breaks, meets))
  const stays = G.or(breaks, G.or(meets, meetsEdge))
  const left = G.sub(wall, G.mul(G.oneHot(brick, brickPlaces), flagged(breaks)))
  const isRebuilt = G.and(isLow, G.equal(G.sum(wall, 1), 0))
  const numbers = [
    G.cast(isOver, "f32"),
    at,
    x,
    G.where(stays, fromY, G.maximum(y, 0)),
    G.where(bounces, chosen(offCeiling, turned), G.where(meetsEdge, chosen(back, turned), turned)),
    fromX,
    fromY,
    G.cast(strikes, "f32"),
    number(lastAction),
  ]
  return {
    state: G.concat([...numbers.map((each) => G.expandDims(each, 1)), G.maximum(left, flagged(isRebuilt))], 1),
    reward: G.cast(breaks, "f32"),
    terminated: isOver,
  }
}

export const BreakoutOptions = MinAtarOptions
export type BreakoutOptions = MinAtarOptions

/** Makes the env with other options: `Breakout.make({ stickyActionProb: 0 })`. */
export const make = (options: BreakoutOptions = {}): BoardEnv => {
  checkOptions("Breakout", options, BreakoutOptions)
  return minAtarEnv(
    {
      name: "Breakout",
      planes: ["paddle", "ball", "trail", "brick"],
      minimalActions: ["nothing", "left", "right"],
      look: breakout,
      stateSize: bricks + brickPlaces,
      lastAction,
      reset,
      step,
      show,
      // The ball is missed after six steps at the earliest.
      graph: () => ({ shortest: 6, observe: observeGraph, step: stepGraph }),
    },
    options,
  )
}

/** The env with its default options: `Batch.make(Breakout.env, 32)`. */
export const env: BoardEnv = make()
