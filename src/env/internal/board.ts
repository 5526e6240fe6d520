import type { Stream } from "../../rng/Rng.ts"
import type { Snapshot } from "../BatchEnv.ts"
import { type Env, make } from "../Env.ts"
import { withRecipe } from "../recipe.ts"
import { box, discrete, type Discrete } from "../Space.ts"
import { canvas, palette, svg } from "./draw.ts"
import { batchOf, copyFrom, type Columns, type Kernel } from "./episodes.ts"

/**
 * The rules of a game on a board. A state is a few whole numbers, which are changed in place and observed as planes of zeros
 * and ones. The rules are written once; both the pure env and the fast batch are made from them.
 */
export interface Rules {
  /** The size of a state. Its first number tells whether the game is over. */
  readonly stateSize: number
  /** Writes the first state of an episode into `state` at `at`, where all numbers are 0. */
  readonly reset: (state: Int32Array, at: number, random: Stream) => void
  /** Makes a move, sets the state's first number if the move ends the game, and returns the reward. */
  readonly step: (state: Int32Array, at: number, action: number, random: Stream) => number
  /** Writes the observation, of shape [planes, height, width], into `into` at `to`, where all numbers are 0. */
  readonly show: (state: Int32Array, at: number, into: Float32Array, to: number) => void
}

export interface BoardGame {
  readonly id: string
  /** The name and options of the game in a config, if these describe it fully. */
  readonly recipe?: { readonly name: string; readonly options: object }
  readonly planes: ReadonlyArray<Plane>
  readonly height: number
  readonly width: number
  readonly actions: number
  /** The text of a module that draws the game on a canvas. */
  readonly ui?: string
  readonly maxSteps?: number
  readonly rewardThreshold?: number
  readonly rules: Rules
}

/** The meaning of a plane and how it is drawn. Later planes are drawn on top; a plane without a letter isn't drawn. */
interface Plane {
  readonly name: string
  readonly letter: string
  readonly colour: string
}

export type BoardEnv = Env<Int32Array, Discrete>

export const boardEnv = (game: BoardGame): BoardEnv => {
  const { id, planes, height, width, actions, rules } = game
  const size = planes.length * height * width
  const observe = (state: Int32Array): Float32Array => {
    const seen = new Float32Array(size)
    rules.show(state, 0, seen, 0)
    return seen
  }
  const env: BoardEnv = make({
    id,
    observationSpace: box(0, 1, [planes.length, height, width]),
    actionSpace: discrete(actions),
    ...(game.maxSteps === undefined ? {} : { maxSteps: game.maxSteps }),
    ...(game.rewardThreshold === undefined ? {} : { rewardThreshold: game.rewardThreshold }),
    reset: (random) => {
      const state = new Int32Array(rules.stateSize)
      rules.reset(state, 0, random)
      return state
    },
    observe,
    step: (state, action, random) => {
      const next = state.slice()
      const reward = rules.step(next, 0, action, random)
      return { state: next, reward, terminated: next[0] !== 0 }
    },
    renderText: (state) => drawText(game, observe(state)),
    renderSvg: (state) => drawSvg(game, observe(state)),
    ...(game.ui === undefined ? {} : { ui: game.ui }),
    batch: (numEnvs, options) => batchOf(env, numEnvs, options, (columns) => boardKernel(env, game, columns)),
  })
  return game.recipe === undefined ? env : withRecipe(env, game.recipe.name, game.recipe.options)
}

const boardKernel = (env: BoardEnv, { rules, planes, height, width }: BoardGame, columns: Columns): Kernel => {
  const { numEnvs, observations, rewards, terminated } = columns
  const { stateSize } = rules
  const size = planes.length * height * width
  const states = new Int32Array(numEnvs * stateSize)
  const streams: Array<Stream> = []
  const look = (index: number): void => {
    observations.fill(0, index * size, (index + 1) * size)
    rules.show(states, index * stateSize, observations, index * size)
  }
  return {
    start: (index, random) => {
      streams[index] = random
      states.fill(0, index * stateSize, (index + 1) * stateSize)
      rules.reset(states, index * stateSize, random)
      look(index)
    },
    advance: (actions, waiting) => {
      for (let index = 0; index < numEnvs; index++) {
        if (waiting[index] !== 0) continue
        const at = index * stateSize
        rewards[index] = rules.step(states, at, actions[index], streams[index])
        terminated[index] = states[at] !== 0 ? 1 : 0
        look(index)
      }
    },
    save: (): Snapshot => ({
      states: states.slice(),
      positions: Float64Array.from(streams, ({ position }) => position),
    }),
    load: (saved, streamOf) => {
      copyFrom(env.id, saved, "states", states)
      const positions = new Float64Array(numEnvs)
      copyFrom(env.id, saved, "positions", positions)
      for (let index = 0; index < numEnvs; index++) {
        streams[index] = streamOf(index)
        streams[index].position = positions[index]
      }
    },
    renderText: (index) => env.renderText?.(states.slice(index * stateSize, (index + 1) * stateSize)) ?? "",
    renderSvg: (index) => env.renderSvg?.(states.slice(index * stateSize, (index + 1) * stateSize)) ?? "",
  }
}

const drawText = ({ planes, height, width }: BoardGame, seen: Float32Array): string => {
  const { write, text } = canvas(2 * width, height, { width: 1, height: 1 })
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const top = topAt(planes, seen, (plane) => (plane * height + y) * width + x)
      write(2 * x, y, top?.letter ?? "·")
    }
  }
  return text()
}

const topAt = (planes: ReadonlyArray<Plane>, seen: Float32Array, place: (plane: number) => number): Plane | undefined =>
  planes.findLast(({ letter }, plane) => letter !== "" && seen[place(plane)] !== 0)

const cell = 24

const drawSvg = ({ id, planes, height, width }: BoardGame, seen: Float32Array): string => {
  const squares: Array<string> = []
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const top = topAt(planes, seen, (plane) => (plane * height + y) * width + x)
      const colour = top?.colour ?? palette.paper
      squares.push(
        `<rect x="${x * cell}" y="${y * cell}" width="${cell - 1}" height="${cell - 1}" rx="2" fill="${colour}"/>`,
      )
    }
  }
  return svg(id, width * cell, height * cell, squares)
}

/** Sets the element of a plane at a place to 1. */
export const mark = (
  into: Float32Array,
  to: number,
  plane: number,
  height: number,
  width: number,
  y: number,
  x: number,
): void => {
  into[to + (plane * height + y) * width + x] = 1
}

/** Repeats the last action with this probability (Machado et al. 2018). The state keeps the last action at `slot`. */
export const sticky = (
  state: Int32Array,
  slot: number,
  action: number,
  probability: number,
  random: Stream,
): number => {
  const taken = probability > 0 && random.uniformDouble() < probability ? state[slot] : action
  state[slot] = taken
  return taken
}
