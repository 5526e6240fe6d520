/**
 * GridWorld: find the way to a goal on a map with obstacles. Each episode draws a random map on which the goal can be
 * reached. This is the task of value iteration networks (Tamar et al. 2016). The reward is 1 at the goal, −0.01 per
 * step, and −0.1 for a step into an obstacle, which leaves the agent in place.
 *
 * Actions: the eight neighbours, clockwise from up. The observation's planes (grids of zeros and ones): obstacle,
 * goal, agent.
 */
import * as Schema from "effect/Schema"
import { bounded, fraction } from "../../../base/config/fields.ts"
import * as G from "../../../tensor/graph/ops.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import type { EnvGraph } from "../EnvGraph.ts"
import { checkOptions, checkWhole, EnvError } from "../../../base/EnvError.ts"
import { boardEnv, type BoardEnv, type Rules } from "../internal/board.ts"
import { flagged, lookUp, numbersOf } from "../internal/stateTensors.ts"
import { boardPictures } from "../ui/board.ts"
import { gridWorld } from "../ui/boards.ts"

export const GridWorldOptions = Schema.Struct({
  /** Width and height, including the wall around the map. Default: 8. */
  size: Schema.optionalKey(bounded("cells")),
  /** The probability that a place inside the wall is an obstacle. Default: 0.25. */
  density: Schema.optionalKey(fraction),
  /** Truncates episodes at this many steps. Default: 4 × size. */
  maxSteps: Schema.optionalKey(bounded("count")),
})
export type GridWorldOptions = typeof GridWorldOptions.Type

// These are offsets in a state: whether the game is over, the places of agent and goal, and from `cells` on a number
// for each place of the map, row by row: 1 is an obstacle, 0 none.
const over = 0
const agent = 1
const goal = 2
const cells = 3

// The change of row and column by each of the eight actions.
const rowStep = [-1, -1, 0, 1, 1, 1, 0, -1]
const columnStep = [0, 1, 1, 1, 0, -1, -1, -1]

/** Returns the place to which an action leads; −1 if that is outside the map. Places are numbered row by row. */
const neighbour = (size: number, place: number, action: number): number => {
  const row = Math.floor(place / size) + rowStep[action]
  const column = (place % size) + columnStep[action]
  return row < 0 || column < 0 || row >= size || column >= size ? -1 : row * size + column
}

/** Returns the number of steps from every place to the goal; −1 if the goal cannot be reached from the place. */
export const distances = (state: Int32Array): Int32Array => {
  const steps = new Int32Array(state.length - cells).fill(-1)
  const size = Math.sqrt(steps.length)
  const queue = [state[goal]]
  steps[state[goal]] = 0
  for (const place of queue) {
    for (let action = 0; action < rowStep.length; action++) {
      const next = neighbour(size, place, action)
      if (next < 0 || state[cells + next] !== 0 || steps[next] >= 0) continue
      steps[next] = steps[place] + 1
      queue.push(next)
    }
  }
  return steps
}

/** Returns the first action that leads to a place with fewer steps to the goal; −1 if no action does. */
export const optimalAction = (state: Int32Array): number => {
  const stepsToGoal = distances(state)
  const size = Math.sqrt(stepsToGoal.length)
  return rowStep.findIndex((_, action) => {
    const next = neighbour(size, state[agent], action)
    return next >= 0 && stepsToGoal[next] >= 0 && stepsToGoal[next] < stepsToGoal[state[agent]]
  })
}

/** Returns the state that produces this observation. */
export const stateOf = (observation: ArrayLike<number>): Int32Array => {
  const places = observation.length / 3
  const state = new Int32Array(cells + places)
  for (let place = 0; place < places; place++) {
    state[cells + place] = observation[place]
    if (observation[places + place] !== 0) state[goal] = place
    if (observation[2 * places + place] !== 0) state[agent] = place
  }
  return state
}

const rulesFor = (size: number, density: number): Rules => {
  const places = size * size
  const onEdge = (place: number): boolean => {
    const [row, column] = [Math.floor(place / size), place % size]
    return row === 0 || column === 0 || row === size - 1 || column === size - 1
  }
  /** Draws a map into the state; returns false if the goal can't be reached, or is less than two steps away. */
  const draw = (state: Int32Array, at: number, random: Stream): boolean => {
    for (let place = 0; place < places; place++) {
      state[at + cells + place] = onEdge(place) || random.uniformDouble() < density ? 1 : 0
    }
    /** Chooses a place inside the wall at random, and removes the obstacle there. */
    const free = (): number => {
      let place: number
      do place = random.integer(places)
      while (onEdge(place))
      state[at + cells + place] = 0
      return place
    }
    state[at + goal] = free()
    state[at + agent] = free()
    // From a place next to the goal, there would be nothing to plan.
    return distances(state.subarray(at, at + cells + places))[state[at + agent]] > 1
  }
  return {
    stateSize: cells + places,
    reset: (state, at, random) => {
      while (!draw(state, at, random));
    },
    step: (state, at, action) => {
      const to = neighbour(size, state[at + agent], action)
      if (to < 0 || state[at + cells + to] !== 0) return -0.1
      state[at + agent] = to
      if (to !== state[at + goal]) return -0.01
      state[at + over] = 1
      return 1
    },
    show: (state, at, into, to) => {
      for (let place = 0; place < places; place++) into[to + place] = state[at + cells + place]
      into[to + places + state[at + goal]] = 1
      into[to + 2 * places + state[at + agent]] = 1
    },
  }
}

const graphFor = (size: number): Omit<EnvGraph, "start" | "stateSize"> => {
  const places = size * size
  // The place to which each action leads from each place. The agent is never at the edge, so it never leaves the map.
  const neighbours = G.constant(
    Int32Array.from({ length: places * rowStep.length }, (_, at) =>
      Math.max(0, neighbour(size, Math.floor(at / rowStep.length), at % rowStep.length)),
    ),
  )
  return {
    // The goal is at least two steps away.
    shortest: 2,
    observe: (state) => {
      const [from, to] = [G.cast(numbersOf(state, agent), "i32"), G.cast(numbersOf(state, goal), "i32")]
      const map = G.slice(state, [0, cells], [state.shape[0], places])
      return G.concat([map, G.oneHot(to, places), G.oneHot(from, places)], 1)
    },
    step: (state, action) => {
      const from = G.cast(numbersOf(state, agent), "i32")
      const to = G.gather(neighbours, G.add(G.mul(from, rowStep.length), action))
      const map = G.slice(state, [0, cells], [state.shape[0], places])
      const blocked = G.greater(lookUp(map, to), 0.5)
      const reached = G.and(G.not(blocked), G.equal(to, G.cast(numbersOf(state, goal), "i32")))
      const place = G.cast(G.where(blocked, from, to), "f32")
      const rest = G.slice(state, [0, goal], [state.shape[0], 1 + places])
      return {
        state: G.concat([flagged(reached), G.expandDims(place, 1), rest], 1),
        reward: G.where(blocked, -0.1, G.where(reached, 1, -0.01)),
        terminated: reached,
      }
    },
  }
}

/** Makes the env with other options: `GridWorld.make({ size: 16, density: 0.3 })`. */
export const make = (options: GridWorldOptions = {}): BoardEnv => {
  checkOptions("GridWorld", options, GridWorldOptions)
  const { size = 8, density = 0.25, maxSteps = 4 * size } = options
  const id = `GridWorld-${size}x${size}-v0`
  checkWhole(id, size, 5, `GridWorld: size ${size}`)
  if (!(density >= 0 && density <= 0.6)) {
    throw new EnvError({ env: id, message: `GridWorld: density ${density}; it must be from 0 to 0.6` })
  }
  return boardEnv({
    id,
    recipe: { name: "GridWorld", options },
    planes: ["obstacle", "goal", "agent"],
    size,
    actions: rowStep.length,
    ...boardPictures(id, size, gridWorld, { moves: "↑↗→↘↓↙←↖" }),
    maxSteps,
    rules: rulesFor(size, density),
    graph: () => graphFor(size),
  })
}

/** The env with its default options: `Batch.make(GridWorld.env, 32)`. */
export const env: BoardEnv = make()
export const large: BoardEnv = make({ size: 16 })
