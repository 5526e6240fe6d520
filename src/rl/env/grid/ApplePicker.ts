/**
 * ApplePicker-v0 and ApplePickerDeterministic-v0: pick all apples of an orchard. Modelled on J. Hare's envs of the same
 * names (github.com/jhare96/apple_picker), with another orchard.
 *
 * The orchard has 84 × 84 places and hedges with gaps. Actions: up, down, left, right; a move into a hedge or over the
 * edge does nothing. Walking onto an apple is worth 1, and the last apple ends the episode; it is truncated after 5,000
 * steps. In `ApplePicker-v0` each episode draws the places of 100 apples and of the agent;
 * `ApplePickerDeterministic-v0` has 20 apples, and all its episodes begin in the same state. The observation's planes
 * (grids of zeros and ones): agent, apple, hedge.
 */
import * as Schema from "effect/Schema"
import { bounded, intBetween } from "../../../base/config/fields.ts"
import * as G from "../../../tensor/graph/ops.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import { stream, type Stream } from "../../../base/rng/Rng.ts"
import type { EnvGraph } from "../EnvGraph.ts"
import { checkOptions, checkWhole, EnvError } from "../../../base/EnvError.ts"
import { boardEnv, type BoardEnv, columnStep, rowStep, type Rules } from "../internal/board.ts"
import { flagged, lookUp, numbersOf } from "../internal/stateTensors.ts"
import { boardPictures } from "../ui/board.ts"
import { applePicker } from "../ui/boards.ts"

export const ApplePickerOptions = Schema.Struct({
  /** Width and height, at least 8. Default: 84. */
  size: Schema.optionalKey(bounded("cells")),
  /** The number of apples. Default: 100, or 20 with a `layoutSeed`. */
  apples: Schema.optionalKey(intBetween(1, 1000)),
  /** Draws one layout from this seed for all episodes. Default: each episode draws a new layout. */
  layoutSeed: Schema.optionalKey(bounded("seed")),
  id: Schema.optionalKey(Schema.NonEmptyString),
})
export type ApplePickerOptions = typeof ApplePickerOptions.Type

// These are offsets in a state: whether the game is over, the agent's place, the number of apples left, and from
// `apples` on a number for each place of the board: 1 if an apple is there, else 0.
const over = 0
const agent = 1
const left = 2
const apples = 3

/** There is a hedge every six rows, with a gap of two places every twelve columns. */
const isHedge = (row: number, column: number): boolean => row % 6 === 3 && column % 12 !== 5 && column % 12 !== 6

/** Returns 1 for each place with a hedge and 0 for the others, row by row. */
const hedgesOf = (size: number): Uint8Array => {
  const hedges = new Uint8Array(size * size)
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) hedges[row * size + column] = isHedge(row, column) ? 1 : 0
  }
  return hedges
}

const graphFor = (size: number, count: number): Omit<EnvGraph, "start" | "stateSize"> => {
  const places = size * size
  const hedges = hedgesOf(size)
  // The place at which the agent is after each action at each place: the same place if the move does nothing.
  const after = Int32Array.from({ length: places * rowStep.length }, (_, at) => {
    const [place, action] = [Math.floor(at / rowStep.length), at % rowStep.length]
    const [row, column] = [Math.floor(place / size) + rowStep[action], (place % size) + columnStep[action]]
    const isOutside = row < 0 || column < 0 || row >= size || column >= size
    return isOutside || hedges[row * size + column] === 1 ? place : row * size + column
  })
  const orchardOf = (state: Tensor): Tensor => G.slice(state, [0, apples], [state.shape[0], places])
  return {
    // Each step picks at most one apple.
    shortest: count,
    observe: (state) => {
      const fixed = G.broadcastTo(G.constant(Float32Array.from(hedges), [1, places]), [state.shape[0], places])
      return G.concat([G.oneHot(G.cast(numbersOf(state, agent), "i32"), places), orchardOf(state), fixed], 1)
    },
    step: (state, action) => {
      const from = G.cast(numbersOf(state, agent), "i32")
      const to = G.gather(G.constant(after), G.add(G.mul(from, rowStep.length), action))
      // The agent's own place never has an apple, so a move that does nothing picks none.
      const picked = lookUp(orchardOf(state), to)
      const remaining = G.sub(numbersOf(state, left), picked)
      const isOver = G.equal(remaining, 0)
      const orchard = G.sub(orchardOf(state), G.mul(G.oneHot(to, places), G.expandDims(picked, 1)))
      const place = G.expandDims(G.cast(to, "f32"), 1)
      return {
        state: G.concat([flagged(isOver), place, G.expandDims(remaining, 1), orchard], 1),
        reward: picked,
        terminated: isOver,
      }
    },
  }
}

const rulesFor = (size: number, count: number, layoutSeed: number | undefined): Rules => {
  const places = size * size
  const hedges = hedgesOf(size)
  const layout = (state: Int32Array, at: number, random: Stream): void => {
    const free = (): number => {
      let place: number
      do place = random.integer(places)
      while (hedges[place] === 1 || state[at + apples + place] === 1 || place === state[at + agent])
      return place
    }
    // The agent has no place yet: if its number stayed 0, `free` could never return place 0.
    state[at + agent] = -1
    state[at + agent] = free()
    state[at + left] = count
    for (let apple = 0; apple < count; apple++) state[at + apples + free()] = 1
  }
  return {
    stateSize: apples + places,
    reset: (state, at, random) =>
      layout(state, at, layoutSeed === undefined ? random : stream(layoutSeed, "apple-picker", size)),
    step: (state, at, action) => {
      const row = Math.floor(state[at + agent] / size) + rowStep[action]
      const column = (state[at + agent] % size) + columnStep[action]
      const to = row * size + column
      if (row < 0 || column < 0 || row >= size || column >= size || hedges[to] === 1) return 0
      state[at + agent] = to
      if (state[at + apples + to] === 0) return 0
      state[at + apples + to] = 0
      if (--state[at + left] === 0) state[at + over] = 1
      return 1
    },
    show: (state, at, into, to) => {
      into[to + state[at + agent]] = 1
      for (let place = 0; place < places; place++) {
        into[to + places + place] = state[at + apples + place]
        into[to + 2 * places + place] = hedges[place]
      }
    },
  }
}

/** Makes the env with other options: `ApplePicker.make({ size: 21, apples: 10 })`. */
export const make = (options: ApplePickerOptions = {}): BoardEnv => {
  checkOptions("ApplePicker", options, ApplePickerOptions)
  const { size = 84, layoutSeed } = options
  const { apples: count = layoutSeed === undefined ? 100 : 20, id = "ApplePicker-v0" } = options
  checkWhole(id, size, 8, `ApplePicker: size ${size}`)
  const mostApples = Math.floor((size * size) / 4)
  if (!Number.isInteger(count) || count < 1 || count > mostApples) {
    throw new EnvError({ env: id, message: `ApplePicker: ${count} apples; there is room for 1 to ${mostApples}` })
  }
  return boardEnv({
    id,
    recipe: { name: "ApplePicker", options },
    planes: ["agent", "apple", "hedge"],
    size,
    actions: rowStep.length,
    ...boardPictures(id, size, applePicker, { moves: "↑↓←→" }),
    maxSteps: 5000,
    rules: rulesFor(size, count, layoutSeed),
    graph: () => graphFor(size, count),
  })
}

/** The env with its default options: `Batch.make(ApplePicker.env, 16)`. */
export const env: BoardEnv = make()
export const deterministic: BoardEnv = make({ layoutSeed: 0, id: "ApplePickerDeterministic-v0" })
