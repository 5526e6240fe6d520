/**
 * PixelMaze-v0: a small maze observed as a colour picture of 20 × 20 pixels: walls are white, the agent is blue, apples
 * (1 point each) are green, and the goal (10 points, and the end) is red. Each episode draws the places of walls,
 * apples, goal and agent at random, so that all can be reached. With `layoutSeed`, all episodes have the same maze, or
 * one of `layouts` mazes, and each draws only the agent's place, far from the goal. To measure how well a policy
 * generalises, train on some mazes and validate on others.
 *
 * Actions: up, down, left, right. The observation's planes (grids of zeros and ones) are the colours red, green and
 * blue.
 */
import * as Schema from "effect/Schema"
import { bounded, intBetween } from "../../../base/config/fields.ts"
import { stream, type Stream } from "../../../base/rng/Rng.ts"
import { checkOptions, EnvError } from "../../../base/EnvError.ts"
import { boardEnv, type BoardEnv, type Rules } from "../internal/board.ts"
import { boardPictures } from "../ui/board.ts"
import { pixelMaze } from "../ui/boards.ts"

// The maze has `side` × `side` places, and the picture shows each as `pixels` × `pixels` pixels.
const side = 10
const pixels = 2
const width = side * pixels
const mostApples = 16
const density = 0.2
const applePoints = 1
const goalPoints = 10

export const PixelMazeOptions = Schema.Struct({
  /** The number of apples. Default: 4. */
  apples: Schema.optionalKey(intBetween(0, 1000)),
  /** Truncates episodes at this many steps. Default: 200. */
  maxSteps: Schema.optionalKey(bounded("count")),
  /** Draws one maze from this seed for all episodes. Default: each episode draws a new maze. */
  layoutSeed: Schema.optionalKey(bounded("seed")),
  /** The number of mazes, from as many seeds, beginning with `layoutSeed`; each episode has one of them. Default: 1. */
  layouts: Schema.optionalKey(bounded("layouts")),
})
export type PixelMazeOptions = typeof PixelMazeOptions.Type

// `over`, `agent` and `cells` are offsets in a state; from `cells` on, a number for each place tells what is there:
// `nothing`, `wall`, `apple` or `goal`.
const over = 0
const agent = 1
const cells = 2
const nothing = 0
const wall = 1
const apple = 2
const goal = 3

/** The change of the place's number by the actions up, down, left and right. */
const placeStep = [-side, side, -1, 1]

/** Returns the places reachable from `from`, the nearest first. (The wall around the maze keeps steps inside.) */
const reachable = (state: Int32Array, at: number, from: number): ReadonlyArray<number> => {
  const seen = new Uint8Array(side * side)
  const queue = [from]
  seen[from] = 1
  for (const place of queue) {
    for (const step of placeStep) {
      const next = place + step
      if (seen[next] !== 0 || state[at + cells + next] === wall) continue
      seen[next] = 1
      queue.push(next)
    }
  }
  return queue
}

const rulesFor = (apples: number, layoutSeed: number | undefined, layouts: number): Rules => ({
  stateSize: cells + side * side,
  reset: (state, at, random) => {
    const number = layouts === 1 ? 0 : random.integer(layouts)
    const drawing = layoutSeed === undefined ? random : stream(layoutSeed + number, "pixel-maze", apples)
    while (!drawMaze(state, at, apples, drawing));
    if (layoutSeed === undefined) return
    const end = state.indexOf(goal, at + cells) - at - cells
    const free = reachable(state, at, end).filter((place) => state[at + cells + place] === nothing)
    // `free` is sorted by the distance from the goal, so this is the farther half.
    const farther = free.slice(free.length >> 1)
    state[at + agent] = farther[random.integer(farther.length)]
  },
  step: (state, at, action) => {
    const to = state[at + agent] + placeStep[action]
    const target = state[at + cells + to]
    if (target === wall) return 0
    state[at + agent] = to
    state[at + cells + to] = nothing
    if (target === goal) state[at + over] = 1
    return target === goal ? goalPoints : target === apple ? applePoints : 0
  },
  show: (state, at, into, to) => {
    for (let place = 0; place < side * side; place++) {
      // −1 stands for the agent.
      const what = place === state[at + agent] ? -1 : state[at + cells + place]
      if (what === nothing) continue
      if (what === wall || what === goal) paint(into, to, 0, place)
      if (what === wall || what === apple) paint(into, to, 1, place)
      if (what === wall || what === -1) paint(into, to, 2, place)
    }
  },
})

const paint = (into: Float32Array, to: number, plane: number, place: number): void => {
  const corner = to + plane * width * width + Math.floor(place / side) * pixels * width + (place % side) * pixels
  for (let row = 0; row < pixels; row++) {
    for (let column = 0; column < pixels; column++) into[corner + row * width + column] = 1
  }
}

/** Draws a random maze into the state. Returns false if too few places can be reached; then the caller draws again. */
const drawMaze = (state: Int32Array, at: number, apples: number, random: Stream): boolean => {
  for (let place = 0; place < side * side; place++) {
    const [row, column] = [Math.floor(place / side), place % side]
    const onEdge = row === 0 || column === 0 || row === side - 1 || column === side - 1
    state[at + cells + place] = onEdge || random.uniformDouble() < density ? wall : nothing
  }
  const start = (1 + random.integer(side - 2)) * side + 1 + random.integer(side - 2)
  state[at + agent] = start
  state[at + cells + start] = nothing
  const places = reachable(state, at, start).slice(1)
  if (places.length < side * side * 0.4) return false
  for (let index = 0; index <= apples; index++) {
    // Index 0 is the goal, which lies in the farther half of the places; the others are apples.
    const from = index === 0 ? places.length >> 1 : 0
    let place: number
    do place = places[from + random.integer(places.length - from)]
    while (state[at + cells + place] !== nothing)
    state[at + cells + place] = index === 0 ? goal : apple
  }
  return true
}

/** Makes the env with other options: `PixelMaze.make({ layoutSeed: 1 })`. */
export const make = (options: PixelMazeOptions = {}): BoardEnv => {
  checkOptions("PixelMaze", options, PixelMazeOptions)
  const { apples = 4, maxSteps = 200, layoutSeed, layouts = 1 } = options
  const id = "PixelMaze-v0"
  if (!Number.isInteger(apples) || apples < 0 || apples > mostApples) {
    throw new EnvError({ env: id, message: `PixelMaze: ${apples} apples; there is room for 0 to ${mostApples}` })
  }
  if (layoutSeed === undefined && layouts !== 1) {
    throw new EnvError({ env: id, message: `PixelMaze: ${layouts} layouts need a layoutSeed, the seed of the first` })
  }
  return boardEnv({
    id,
    recipe: { name: "PixelMaze", options },
    planes: ["red", "green", "blue"],
    size: width,
    actions: placeStep.length,
    ...boardPictures(id, side, pixelMaze, { moves: "↑↓←→" }),
    maxSteps,
    rules: rulesFor(apples, layoutSeed, layouts),
  })
}

/** The env with its default options: `Batch.make(PixelMaze.env, 16)`. */
export const env: BoardEnv = make()
