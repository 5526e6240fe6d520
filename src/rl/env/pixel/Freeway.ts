/**
 * MinAtar's Freeway (Young and Tian 2019, arXiv:1903.03176): a chicken crosses eight lanes of cars, whose speeds and
 * directions are drawn anew after each crossing. It moves at most every third step, and begins anew when a car hits it. The
 * reward is 1 for each crossing; the game ends after 2,501 steps. Its difficulty is always the same.
 *
 * Actions are MinAtar's minimal set: nothing, up, down. The observation's planes of 10 × 10 zeros and ones: chicken, car, and
 * one plane for each of five speeds, with the place behind each car of that speed; 1 is the fastest. Unlike in MinAtar, a new
 * episode forgets the last action, so that each episode can be replayed alone.
 */
import { checkOptions } from "../../../base/EnvError.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { type BoardEnv, mark } from "../internal/board.ts"
import { freeway } from "../ui/minAtarBoards.ts"
import { actions, minAtarEnv, MinAtarOptions, moved, side } from "./minAtar.ts"

const moveInterval = 3
const timeLimit = 2500
const slowest = 5
const chickenX = 4
const lastRow = side - 1

// These are offsets in a state. From `cars` on, there are three numbers for the car of each lane.
const over = 0
const lastAction = 1
const chicken = 2
const untilMove = 3
const left = 4
const cars = 5
const lanes = 8

// These are the offsets in the numbers of a car. `speed` is the number of steps that it waits between two moves; it is
// negative if the car moves to the left.
const column = 0
const wait = 1
const speed = 2
const carSize = 3

const carAt = (at: number, lane: number): number => at + cars + lane * carSize

/** Draws new speeds for all cars: first how fast they are, then to which side they move. */
const drawSpeeds = (state: Int32Array, at: number, random: Stream): void => {
  for (let lane = 0; lane < lanes; lane++) state[carAt(at, lane) + wait] = 1 + random.integer(slowest)
  for (let lane = 0; lane < lanes; lane++) {
    const car = carAt(at, lane)
    state[car + speed] = random.uniformDouble() < 0.5 ? -state[car + wait] : state[car + wait]
  }
}

/** The column after `x` in a direction; the board's edges are joined. */
const around = (x: number, by: number): number => (x + by + side) % side

const reset = (state: Int32Array, at: number, random: Stream): void => {
  drawSpeeds(state, at, random)
  state[at + chicken] = lastRow
  state[at + untilMove] = moveInterval
  state[at + left] = timeLimit
}

const walk = (state: Int32Array, at: number, action: number): void => {
  if ((action !== actions.up && action !== actions.down) || state[at + untilMove] !== 0) return
  state[at + untilMove] = moveInterval
  state[at + chicken] = moved(state[at + chicken], action === actions.up ? -1 : 1)
}

/** Brings the chicken back to the start if the car of a lane is at its place. */
const hit = (state: Int32Array, at: number, lane: number): void => {
  if (state[carAt(at, lane) + column] === chickenX && state[at + chicken] === lane + 1) state[at + chicken] = lastRow
}

const drive = (state: Int32Array, at: number, lane: number): void => {
  const car = carAt(at, lane)
  hit(state, at, lane)
  if (state[car + wait] > 0) {
    state[car + wait]--
    return
  }
  state[car + wait] = Math.abs(state[car + speed])
  state[car + column] = around(state[car + column], Math.sign(state[car + speed]))
  hit(state, at, lane)
}

const step = (state: Int32Array, at: number, action: number, random: Stream): number => {
  walk(state, at, action)
  let reward = 0
  if (state[at + chicken] === 0) {
    reward = 1
    drawSpeeds(state, at, random)
    state[at + chicken] = lastRow
  }
  for (let lane = 0; lane < lanes; lane++) drive(state, at, lane)
  if (state[at + untilMove] > 0) state[at + untilMove]--
  if (--state[at + left] < 0) state[at + over] = 1
  return reward
}

const show = (state: Int32Array, at: number, into: Float32Array, to: number): void => {
  mark(into, to, 0, side, state[at + chicken], chickenX)
  for (let lane = 0; lane < lanes; lane++) {
    const car = carAt(at, lane)
    mark(into, to, 1, side, lane + 1, state[car + column])
    const behind = around(state[car + column], -Math.sign(state[car + speed]))
    mark(into, to, 1 + Math.abs(state[car + speed]), side, lane + 1, behind)
  }
}

export const FreewayOptions = MinAtarOptions
export type FreewayOptions = MinAtarOptions

/** Makes the env with other options: `Freeway.make({ stickyActionProb: 0 })`. */
export const make = (options: FreewayOptions = {}): BoardEnv => {
  checkOptions("Freeway", options, FreewayOptions)
  return minAtarEnv(
    {
      name: "Freeway",
      planes: ["chicken", "car", "speed1", "speed2", "speed3", "speed4", "speed5"],
      minimalActions: ["nothing", "up", "down"],
      look: freeway,
      stateSize: cars + lanes * carSize,
      lastAction,
      reset,
      step,
      show,
    },
    options,
  )
}

/** The env with its default options: `Batch.make(Freeway.env, 32)`. */
export const env: BoardEnv = make()
